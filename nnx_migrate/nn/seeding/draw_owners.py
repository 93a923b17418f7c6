"""Which draw of a key each variable of a model starts from, and what Linen folds into that key.

Linen (flax 0.12.8, core/scope.py) folds the scope's path and a count into the key of a stream. It
counts the keys of one scope and stream from 1 in the order they are drawn, and goes on counting when
it runs the body of a scan again. Every parameter draws one; another variable does where it starts from
``make_rng``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any

from nnx_migrate.nn.seeding.stacks import Stacks

PARAMS = "default"  # the stream of NNX that initialisers draw from; Linen's ``params``

DrawCounts = dict[tuple[tuple[str, ...], str], int]  # keys drawn, by the path of a scope and stream


@dataclass(frozen=True)
class BuiltVariable:
    """A variable in the order of construction, those of one module one after the other.

    ``path`` is the module's, ``stacks`` are those around it, ``draws`` the draws that its value
    depends on. One that is held already has its draws here, and draws nothing in Linen.
    """

    path: tuple[Any, ...]
    stacks: Stacks
    is_param: bool
    draws: frozenset[int]
    is_given: bool = False


def linen_places(
    variables: Sequence[BuiltVariable],
    streams: Sequence[str],
    draw_counts: DrawCounts | None = None,
    module_draws: Mapping[int, tuple[Any, ...]] = MappingProxyType({}),
) -> Iterator[tuple[int, Stacks, tuple[Any, ...]]]:
    """Draws that feed variables of one module, the stacks around it, and what Linen folds into their keys.

    ``streams`` names the stream of every draw. A draw that variables of several modules start from is left
    out, and so is what their scopes draw from the same stream, parameters aside. ``draw_counts``: how many keys
    each scope drew before, which is counted on there. ``module_draws``: draws that feed no variable, with the
    path of their module.
    """
    draw_counts = {} if draw_counts is None else draw_counts
    scopes = scopes_of_draws(variables)
    drawn_in: dict[tuple[Any, ...], set[int]] = {}
    for draw, scope in scopes.items():
        drawn_in.setdefault(scope, set()).add(draw)
    for draw, path in module_draws.items():
        drawn_in.setdefault(path, set()).add(draw)
    for path, group in groupby(variables, key=lambda one: one.path):
        members = list(group)
        stacks = members[0].stacks
        names = tuple(map(str, path))
        keys = _keys_of(members, drawn_in.get(path, set()), streams)
        unknown = {
            streams[draw]
            for one in members
            for draw in one.draws
            if not one.is_param and draw not in scopes
        }
        for key, count in _with_numbers(keys, stacks.times, names, draw_counts):
            if key.draw is not None and (key.is_param or key.stream not in unknown):
                yield key.draw, stacks, (*names, count)


def scopes_of_draws(variables: Iterable[BuiltVariable]) -> dict[int, tuple[Any, ...]]:
    """The module that draws each key, by its path; those that cannot be told are left out.

    It is the one whose variables start from the key. Where other modules are handed such a value, it is
    the one whose parameter has no later draw: a parameter's own key is the last that it starts from.
    """
    users: dict[int, set[tuple[Any, ...]]] = {}
    owners: dict[int, set[tuple[Any, ...]]] = {}
    for one in variables:
        for draw in one.draws:
            users.setdefault(draw, set()).add(one.path)
        if one.is_param and one.draws:
            owners.setdefault(max(one.draws), set()).add(one.path)
    found = {}
    for draw, paths in users.items():
        paths = paths if len(paths) == 1 else owners.get(draw, paths)
        if len(paths) == 1:
            (found[draw],) = paths
    return found


@dataclass(frozen=True)
class _Key:
    """A key of a scope: the draw that gives it, None for one that no value depends on."""

    draw: int | None
    stream: str
    is_param: bool


def _keys_of(members: Sequence[BuiltVariable], own: set[int], streams: Sequence[str]) -> list[_Key]:
    """The keys that a module draws, in the order in which it does."""
    ordered_keys: list[tuple[int, _Key]] = []
    last = -1
    left = set(own)
    for one in members:
        its = sorted(one.draws & left)
        left -= {*its}
        if one.is_given:
            continue
        ordered_keys += [(draw, _Key(draw, streams[draw], one.is_param)) for draw in its]
        if one.is_param and not (its and its[-1] == max(one.draws)):
            ordered_keys.append((max([last, *its]), _Key(None, PARAMS, is_param=True)))
        last = max([last, *its])
    ordered_keys += [(draw, _Key(draw, streams[draw], is_param=False)) for draw in left]
    return [key for _, key in sorted(ordered_keys, key=lambda one: one[0])]


def _with_numbers(
    keys: Sequence[_Key], times: int, path: tuple[str, ...], draw_counts: DrawCounts
) -> Iterator[tuple[_Key, int]]:
    """Keys with their number among those of their scope and stream.

    ``times``: how often the stacks around them run.
    """
    for stream, total in Counter(one.stream for one in keys).items():
        draw_counts[path, stream] = draw_counts.get((path, stream), 0) + (times - 1) * total
    for one in keys:
        draw_counts[path, one.stream] += 1
        yield one, draw_counts[path, one.stream]
