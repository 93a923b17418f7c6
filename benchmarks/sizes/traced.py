"""The sizes that cases really need: what Linen's layers were given when they were traced.

``record`` runs each case's Linen side; a size is one place in the source that builds a layer whose
parameters depend on its input, with the last axis it was given. Nothing of the rewriter is used.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus.packages import Case
from benchmarks.corpus.rewriting import last_line, run_tool
from nnx_migrate.evidence.schema import connect

# Linen layers whose parameters depend on the last axis of what they are called with, by the name
# of that argument (flax 0.12.8, linen/{linear,attention,normalization,recurrent}.py).
MAIN_INPUT = {
    **dict.fromkeys(("Dense", "DenseGeneral", "Conv", "ConvLocal", "ConvTranspose"), "inputs"),
    **dict.fromkeys(("MultiHeadDotProductAttention", "MultiHeadAttention"), "inputs_q"),
    "SelfAttention": "inputs_q",
    **dict.fromkeys(("LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm", "BatchNorm"), "x"),
    **dict.fromkeys(("LSTMCell", "OptimizedLSTMCell", "GRUCell", "MGUCell"), "inputs"),
    **dict.fromkeys(("SimpleCell", "ConvLSTMCell"), "inputs"),
}
_SECOND = {"in_kv_features": "inputs_k"}


@dataclass(frozen=True, order=True)
class Needed:
    """One size: ``argument`` of the layer built at a place; ``values`` are all that were traced."""

    path: str
    cls: str
    line: int
    column: int
    layer: str
    argument: str
    values: tuple[int, ...]

    @property
    def entry(self) -> str:
        """One line of the committed list, which names the file once."""
        values = "|".join(map(str, self.values))
        return f"{self.line}:{self.column} {self.cls} {self.layer}.{self.argument} = {values}"

    @property
    def text(self) -> str:
        """The same with its file."""
        return f"{self.path}:{self.entry}"


class TraceError(Exception):
    """A case could not be recorded; the message is one line."""


def record(case: Case, source: Path, python: Path, file: Path, timeout: float) -> Path:
    """Record one case's Linen side into ``file``, once. Raises TraceError."""
    if file.exists():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    run = [str(python), "-W", "ignore", "-m", "benchmarks.corpus.truth", "--source", str(source)]
    command = [str(python), "-m", "nnx_migrate", "record", "-o", str(unfinished), "--seconds"]
    command += [str(int(timeout)), "--", *run, str(case.file)]
    try:
        done = run_tool(command, 4 * timeout)
    except subprocess.TimeoutExpired:
        raise TraceError(f"not recorded after {4 * timeout:g} s") from None
    if done.returncode != 0:
        raise TraceError(last_line(done.stderr))
    unfinished.rename(file)
    return file


_CALLS = """
SELECT files.hash, classes.qualname, sites.line, sites.column, calls.builds, calls.shapes
FROM calls JOIN traces ON traces.id = calls.trace_id JOIN sites ON sites.id = calls.site_id
JOIN classes ON classes.id = sites.class_id JOIN files ON files.hash = sites.hash
WHERE traces.changes = '{}' AND calls.below = '' AND calls.method = '__call__'
"""


def needed(file: Path, path_of: Callable[[str], str | None]) -> list[Needed]:
    """The sizes in a recorded case; ``path_of`` gives a file's path in the package by its hash."""
    seen: dict[tuple[str, str, int, int, str, str], set[int]] = {}
    with closing(connect(file)) as connection:
        for hash, cls, line, column, builds, shapes in connection.execute(_CALLS):
            path = path_of(hash)
            if path is None or not builds.startswith("flax.linen."):
                continue
            layer = builds.rpartition(".")[2]
            for argument, size in _sizes(layer, dict(json.loads(shapes))):
                key = (path, cls, line, column + 1, layer, argument)
                seen.setdefault(key, set()).add(size)
    return sorted(Needed(*key, tuple(sorted(values))) for key, values in seen.items())


_NEVER_ALONE = """
SELECT classes.qualname, MIN(traces.failure) FROM classes
JOIN instances ON instances.class_id = classes.id JOIN traces ON traces.instance_id = instances.id
WHERE traces.changes = '{}' AND instances.method = '__call__'
GROUP BY classes.id HAVING COUNT(traces.failure) = COUNT(*) ORDER BY classes.qualname
"""


def untraced(file: Path) -> list[str]:
    """Classes of a recorded case that could not be traced alone, with why: their sizes are missing."""
    with closing(connect(file)) as connection:
        return [f"{cls}: {why}" for cls, why in connection.execute(_NEVER_ALONE)]


def _sizes(layer: str, shapes: dict[str, list[int]]) -> Iterator[tuple[str, int]]:
    main = shapes.get(MAIN_INPUT.get(layer, ""))
    if not main:
        return
    yield "in_features", main[-1]
    for argument, name in _SECOND.items():
        other = shapes.get(name)
        if other and other[-1] != main[-1]:
            yield argument, other[-1]
