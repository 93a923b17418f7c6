"""Classes run in one process under Linen and as auto writes them: variables and outputs have to be the same."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import signal
import sys
import tempfile
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.statements.classes import Drawn, drawn
from benchmarks.statements.grammar.prelude import PRELUDE
from nnx_migrate.cli import main as cli

_SECONDS = 60  # a drawn loop may have no end
_WIDEST = 40
_RUN = """

def run_{name}(x):
    model = {build}
    draws = dict(dropout=jax.random.PRNGKey(1), noise=jax.random.PRNGKey(2))
    variables = {init}(dict(draws, params=jax.random.PRNGKey(0)), x)
    parts = ["batch_stats", "state", "intermediates"]
    first, changed = model.apply(variables, x, rngs=draws, mutable=parts)
    again = {{**variables, **changed}}
    second = model.apply(again, x * 2{flag}, rngs=draws, mutable=parts)

    def loss(params):
        now = {{**variables, "params": params}}
        out, _ = model.apply(now, x{flag}, rngs=draws, mutable=parts)
        return (out**2).mean()

    return variables, first, changed, second, jax.grad(loss)(variables["params"])
"""

Result = (
    list[tuple[str, tuple[int, ...], str]] | str
)  # places, shapes and hashes, or what is raised


@dataclass(frozen=True)
class Outcome:
    """What became of one class."""

    name: str
    form: str
    linen: Result
    after: Result
    reason: str = ""  # why it is lazy

    @property
    def differs(self) -> str:
        """How, if it does."""
        if self.linen == self.after:
            return ""
        if isinstance(self.after, str):
            return f"raises {self.after}"
        pairs = itertools.zip_longest(self.linen, self.after)
        return f"silent: {next(pair for pair in pairs if pair[0] != pair[1])}"


class _Late(BaseException):
    pass


def batches(seed: int, size: int) -> Iterator[list[tuple[Drawn, Result]]]:
    """Classes that run under Linen, some at a time."""
    found: list[tuple[Drawn, Result]] = []
    for number in itertools.count(seed):
        one = drawn(number)
        result = _results(_program([one]), [one])[0]
        if not isinstance(result, str) and max(w for _, s, _ in result for w in (*s, 0)) <= _WIDEST:
            found.append((one, result))
        if len(found) == size:
            yield found
            found = []


def compared(batch: list[tuple[Drawn, Result]]) -> Iterator[Outcome]:
    """The classes of a batch, rewritten together.

    Raises:
      RuntimeError: the rewriter refuses the program.
    """
    classes = [one for one, _ in batch]
    text, found = _rewritten(_program(classes))
    for (one, linen), after in zip(batch, _results(text, classes), strict=True):
        form, reason = found[one.name]
        yield Outcome(one.name, form, linen, after, reason)


def program(seed: int) -> str:
    """The class of a seed as a program that prints what it computes."""
    one = drawn(seed)
    show = f"for one in jax.tree.leaves(run_{one.name}(jnp.arange(6.0).reshape(2, 3) / 6)):"
    return f"{_program([one])}\n\n{show}\n    print(one.shape, one.sum())\n"


def _program(classes: Iterable[Drawn]) -> str:
    texts = [one.text + _run(one) for one in classes]
    return "\n\n".join([PRELUDE, *texts])


def _run(one: Drawn) -> str:
    flag = f", {one.flag}=True" if one.flag else ""
    # Stacked modules that are made outside of jit differ in the last bit (docs/limits.md).
    init = "jax.jit(model.init)" if one.is_lifted else "model.init"
    return _RUN.format(name=one.name, build=one.build, flag=flag, init=init)


def _rewritten(text: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """What a program becomes, and form and reason of each class."""
    with tempfile.TemporaryDirectory() as folder:
        path, report = Path(folder, "main.py"), Path(folder, "report.json")
        path.write_text(text)
        command = ["rewrite", folder, "--allow-dirty", "--no-cache", "--report", str(report)]
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()) as said,
        ):
            code = cli(command)
        if code > 1:
            raise RuntimeError(f"rewrite ended with {code}: {said.getvalue()[:500]}")
        classes = json.loads(report.read_text())["classes"]
        forms = {
            one["name"].split(".")[-1]: (one["form"], one.get("reason") or "") for one in classes
        }
        return path.read_text(), forms


def _results(text: str, classes: Iterable[Drawn]) -> list[Result]:
    module = types.ModuleType("statements_program")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(text, module.__name__, "exec"), module.__dict__)  # noqa: S102
    except Exception as error:  # noqa: BLE001 - such as ``nonlocal`` of a name that is not bound
        return [f"{type(error).__name__}: {error}" for _ in classes]
    return [_result(module.__dict__[f"run_{one.name}"]) for one in classes]


def _result(run: Any) -> Result:
    def stop(*_: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, stop)
    # Again each second: what is raised inside a callback of the garbage collector goes unheard.
    signal.setitimer(signal.ITIMER_REAL, _SECONDS, 1)
    try:
        leaves = jax.tree_util.tree_flatten_with_path(run(jnp.arange(6.0).reshape(2, 3) / 6))[0]
    except _Late:
        return f"no end within {_SECONDS} s"
    except Exception as error:  # noqa: BLE001 - what is raised is a result
        return f"{type(error).__name__}: {str(error)[:160]}"
    finally:
        with contextlib.suppress(_Late):  # it may be late just now
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return [(jax.tree_util.keystr(path), jnp.shape(one), _hash(one)) for path, one in leaves]


def _hash(array: Any) -> str:
    return hashlib.sha256(np.asarray(array).tobytes()).hexdigest()[:8]
