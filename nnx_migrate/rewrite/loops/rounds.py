"""Reads all functions of a project until what they give each other does not change any more.

Some never settle: a function that makes a state of ``pre``, which one of its callers takes of a state
that it made before. Is its result a state, ``pre`` is the parameters of one, which another call does
not give, and the result is none; then ``pre`` is nothing, and the result a state. Such a result is
taken for several things from there on: that function stays as it is, and all others settle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from nnx_migrate.rewrite.loops.kinds import PLAIN, Kind, Unsure, is_special
from nnx_migrate.rewrite.loops.program import RESULT, Program, Summary
from nnx_migrate.rewrite.loops.reading import collect, read_module
from nnx_migrate.source.project import Module, Scope

_ROUNDS = 40
_BOUNDS = 8  # how often what changes may be taken for several things
_Part: TypeAlias = tuple[int, str]  # a function's result or parameter
_Known: TypeAlias = "Mapping[_Part, tuple[Kind | None, object]]"


def read_program(program: Program, modules: Iterable[Module]) -> bool:
    """Read functions until nothing changes; False: it did not come to an end."""
    known = list(modules)
    for module in known:
        collect(program, module.tree, Scope(module))
    if not _settles(program, known):
        return False
    # What nobody has come to by now is a value of other code, which functions hand each other as it is.
    program.rest, program.causes, links = PLAIN, program.problems, program.links
    is_stable = _settles(program, known)
    program.links |= links
    return is_stable


def _settles(program: Program, modules: Sequence[Module]) -> bool:
    for _ in range(_BOUNDS):
        changing = _read(program, modules)
        bounds = _bounds(program, changing)
        if not bounds:
            return not changing
        program.bounds |= bounds
    return False


def _read(program: Program, modules: Sequence[Module]) -> list[_Known]:
    """Read until nothing changes, or all begins anew: what was known in those rounds."""
    found: list[_Known] = []
    for _ in range(_ROUNDS):
        program.begin()
        for module in modules:
            read_module(program, module)
        after = _snapshot(program)
        if found and after == found[-1]:
            return []
        if after in found:
            return found[found.index(after) :]
        found.append(after)
    return found[_ROUNDS // 2 :]


def _snapshot(program: Program) -> _Known:
    recipes = {key: frozenset(one) for key, one in program.recipes.items()}
    found: dict[_Part, tuple[Kind | None, object]] = {
        (0, ""): (None, (frozenset(program.compiled_functions), recipes))
    }
    for key, one in program.summaries.items():
        found[key, RESULT] = one.result, None
        for name in {*one.next_params, *one.updates, *one.fields, *one.overrides, *one.names}:
            found[key, name] = one.next_params.get(name), _needs(one, name)
    return found


def _needs(summary: Summary, name: str) -> object:
    """What a function needs of a parameter, and does to it."""
    return (
        name in summary.updates,
        name in summary.optimizers,
        frozenset(summary.fields.get(name, ())),
        frozenset(summary.overrides.get(name, ())),
        summary.names.get(name),
    )


def _bounds(program: Program, changing: Sequence[_Known]) -> dict[_Part, Kind]:
    """Bounds for what changed: for results, and where these have theirs, for parameters."""
    parts = sorted({part for one in changing for part in one if part[0]})
    found: dict[_Part, Kind] = {}
    for part in parts:
        values = [one.get(part) for one in changing]
        if all(one == values[0] for one in values):
            continue
        kinds = [one[0] or PLAIN for one in values if one is not None]
        bound = Unsure("it hangs on itself") if any(map(is_special, kinds)) else PLAIN
        if program.bounds.get(part) != bound:
            found[part] = bound
    results = {part: bound for part, bound in found.items() if part[1] == RESULT}
    return results or found
