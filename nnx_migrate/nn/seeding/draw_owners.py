"""Which draw of a key each variable of a model starts from, and what Linen folds into that key.

Linen (flax 0.12.8, core/scope.py) folds the scope's path and a count into the key of a stream. It
counts the keys of one scope and stream from 1 in the order they are drawn, and goes on counting when
it runs the body of a scan again. Every parameter draws one; another variable does where it starts from
``make_rng``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from nnx_migrate.nn.seeding.stacks import Stacks

PARAMS = "default"  # the stream of NNX that initialisers draw from; Linen's ``params``


@dataclass(frozen=True)
class Made:
    """A variable in the order of construction, those of one module one after the other.

    ``path`` is the module's, ``stacks`` are those around it, ``draws`` the draws that its value
    depends on.
    """

    path: tuple[Any, ...]
    stacks: Stacks
    is_param: bool
    draws: frozenset[int]


def linen_places(
    made: Sequence[Made],
    streams: Sequence[str],
    rounds: int = 0,
    drawn: Counter[str] | None = None,
) -> Iterator[tuple[int, Stacks, tuple[Any, ...]]]:
    """Draws that feed one variable, the stacks around it, and what Linen folds into its key there.

    ``streams`` names the stream of every draw. A draw that several variables start from is left out,
    and so is what its scope draws from the same stream, parameters aside. ``rounds``: how often the same
    call of Linen made it before. ``drawn``: how many keys were drawn in the scope of the model itself, which
    is counted on there.
    """
    owned = zip(made, own_draws(made), strict=True)
    for path, group in groupby(owned, key=lambda pair: pair[0].path):
        members = list(group)
        stacks = members[0][0].stacks
        own = drawn if not path else None
        for draw, count in _in_scope(stacks.times, members, streams, rounds, own):
            yield draw, stacks, (*map(str, path), count)


def own_draws(made: Sequence[Made]) -> list[int | None]:
    """For each variable, the draw that it alone starts from; other values may follow from it."""
    own: list[int | None] = [None] * len(made)
    params = [index for index, one in enumerate(made) if one.is_param]
    others = [index for index, one in enumerate(made) if not one.is_param]
    # What one claims leaves fewer to the others.
    while _claim(own, made, params, in_order=True):
        pass
    while _claim(own, made, others):
        pass
    return own


def _claim(
    own: list[int | None], made: Sequence[Made], indices: Iterable[int], *, in_order: bool = False
) -> bool:
    """Give variables the only draw that is left to them, unless two have the same.

    ``in_order``: each draws a key when it is made, so a later one of a module that has the same draw
    is computed from the first one's value.
    """
    taken = {draw for draw in own if draw is not None}
    left = {index: made[index].draws - taken for index in indices if own[index] is None}
    single = {index: min(draws) for index, draws in left.items() if len(draws) == 1}
    users: dict[int, list[int]] = {}
    for index, draw in single.items():
        users.setdefault(draw, []).append(index)
    for draw, found in users.items():
        if len(found) == 1 or (in_order and len({made[index].path for index in found}) == 1):
            own[found[0]] = draw
    return any(own[found[0]] is not None for found in users.values())


def _in_scope(
    times: int,
    group: Sequence[tuple[Made, int | None]],
    streams: Sequence[str],
    rounds: int,
    drawn: Counter[str] | None,
) -> Iterator[tuple[int, int]]:
    """Draws that feed one variable, and their number among those of their scope and stream."""
    taken = {draw for _, draw in group if draw is not None}
    shared = {
        streams[draw]
        for one, own in group
        if not one.is_param and own is None
        for draw in one.draws - taken
    }
    rows = [
        (PARAMS if own is None else streams[own], one, own)
        for one, own in group
        if one.is_param or own is not None
    ]
    totals = Counter(stream for stream, _, _ in rows)
    before = Counter({stream: rounds * one for stream, one in totals.items()})
    counts = before if drawn is None else drawn
    counts.update({stream: (times - 1) * one for stream, one in totals.items()})
    for stream, one, own in rows:
        counts[stream] += 1
        if own is not None and (one.is_param or stream not in shared):
            yield own, counts[stream]
