"""Linen's keys inside a call that Linen compiles on its own (:func:`nnx_migrate.nn.lifts.jit`).

For such a call Linen draws a key of every stream in the module's scope, and what runs inside folds its
path below the module into that key. Draws are counted as ever; they are part of what decides
whether a compilation is used again (flax 0.12.8, linen/transforms.py, ``fork_rngs`` and
``_module_fingerprint``; core/lift.py, ``_restore_rng_counters``). :mod:`nnx_migrate.nn.lifts.forks` is the
same for initial values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from nnx_migrate.nn.streams.linen_streams import LinenStream, Path, Place, streams_of
from nnx_migrate.nn.variables.parts import Parts, Values

Draws = dict[tuple[Path, str], int]


@dataclass
class Fork:
    """The streams that draw Linen's keys, in one such call of a module.

    Attributes:
      place: of the module; None if it has no such stream.
      keys: with which the call starts, by stream.
      own: streams of the module itself, which drew these keys.
    """

    place: Place | None = None
    keys: dict[LinenStream, Any] = field(default_factory=dict)
    own: set[LinenStream] = field(default_factory=set)

    def start(self, parts: Parts) -> Values:
        """The random state with which the call starts."""
        found = parts.random_state()
        for one in parts.streams:
            if one.node in self.keys:
                found[one.key] = self.keys[one.node]
            if one.node in self.own:
                found[one.count] = found[one.count] + 1
        return found

    def own_counts(self, parts: Parts, start: Values) -> Values:
        """The counts that the fork itself changed."""
        return {one.count: start[one.count] for one in parts.streams if one.node in self.own}

    def drawn(self) -> Draws:
        """How many keys the module and its submodules have drawn, by paths below it."""
        return {} if self.place is None else self.place.tallies.below(self.place.path)

    def draw(self, more: Mapping[tuple[Path, str], int]) -> None:
        """Count what no trace counted: the draws of a compilation that is used again."""
        for (path, source), count in more.items():
            assert self.place is not None
            self.place.tallies.of((*self.place.path, *path), source).draws += count


@contextmanager
def forked(module: Any) -> Iterator[Fork]:
    """While a call of ``module`` runs that Linen compiles on its own."""
    found = Fork()
    before: dict[LinenStream, Path] = {}
    below: dict[LinenStream, Path] = {}
    drawn: dict[str, int] = {}
    for _, _, stream, path in streams_of(module):
        if not isinstance(stream, LinenStream) or stream in before:
            continue
        place = _above(stream, path)
        if place is None or (found.place and found.place.path != place.path):
            continue
        if stream.source not in drawn:
            tally = place.tallies.of(place.path, stream.source)
            tally.draws += 1
            drawn[stream.source] = tally.draws
        found.place = place
        before[stream] = stream.path
        head = stream.path[: len(stream.path) - len(path)]
        found.keys[stream] = stream.folded(head, drawn[stream.source])
        if not path:
            found.own.add(stream)
        below[stream] = path
    for stream, path in below.items():
        _set_path(stream, path)
    try:
        yield found
    finally:
        for stream, path in before.items():
            _set_path(stream, path)


def _above(stream: LinenStream, path: Path) -> Place | None:
    """The place of the module that holds a stream at ``path``; None for one left as it is.

    A module that was handed in stands elsewhere in Linen, and an array of keys is that of a stack.
    """
    if stream.key[...].ndim:
        return None
    where = stream.place.path
    head = len(where) - len(path)
    if head < 0 or where[head:] != path:
        return None
    return Place(where[:head], stream.place.tallies)


def _set_path(stream: LinenStream, path: Path) -> None:
    vars(stream)["path"] = path  # also in another trace than that of the module, which NNX forbids
