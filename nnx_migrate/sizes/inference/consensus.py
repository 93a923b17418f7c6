"""One size out of all that the calls of a submodule show."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Use
from nnx_migrate.sizes.interpreter import spellable


def agreed_size(uses: list[Use], key: str) -> tuple[Expr | None, bool]:
    """Size that the uses agree on, and whether every use hangs on a call argument.

    Every call of one submodule meets the same parameter, so any size seen in a call that happens
    whenever another does is the size of both. Calls of which an instance makes only one, because its
    fields say which, may differ: the size then is a choice by those fields. Submodules that one
    constructor call builds round by round must agree.
    """
    apart = {id(use.module) for use in uses if use.apart}
    modules: dict[tuple[int, int], list[Use]] = {}
    for number, use in enumerate(uses):
        which = number if id(use.module) in apart else 0
        modules.setdefault((id(use.module), which), []).append(use)
    found = [_size_of_one(one, key) for one in modules.values()]
    if not found or any(size != found[0][0] for size, _ in found):
        return None, False
    return found[0][0], all(conditional for _, conditional in found)


@dataclass(frozen=True)
class _Arm:
    """Calls under the same conditions over fields, and the size that they show.

    It is certain if no condition beside them hangs on the arguments of a call.
    """

    conditions: frozenset[Expr]
    size: Expr | None
    certain: bool


def _size_of_one(uses: list[Use], key: str) -> tuple[Expr | None, bool]:
    """The size of one submodule."""
    groups: dict[frozenset[Expr], list[Use]] = {}
    for use in uses:
        groups.setdefault(_over_fields(use), []).append(use)
    arms = [
        _Arm(conditions, _consensus(group, key), any(use.certain for use in group))
        for conditions, group in groups.items()
    ]
    size = _choice([arm for arm in arms if not _is_covered(arm, arms)])
    return size, size is not None and not is_called(uses)


def is_called(uses: Sequence[Use]) -> bool:
    """Whether one of the calls happens whatever the arguments are.

    Of two calls, one where a parameter is given and one where it is not, one does.
    """
    met = {_facts(use) for use in uses}
    return any(
        facts is not None
        and (not facts or (len(facts) == 1 and frozenset(map(ex.negation, facts)) in met))
        for facts in met
    )


def _facts(use: Use) -> frozenset[Expr] | None:
    """The facts about arguments that a use hangs on; None where it hangs on more than facts."""
    if None in use.conditions:
        return None
    known = [one for one in use.conditions if one is not None]
    return frozenset(one for one in known if any(map(ex.fact_of, one.names)))


def _over_fields(use: Use) -> frozenset[Expr]:
    """The conditions of a use that hold in every call of an instance or in none."""
    return frozenset(
        one for one in use.conditions if one is not None and not any(map(ex.fact_of, one.names))
    )


def _consensus(uses: list[Use], key: str) -> Expr | None:
    """What the first call that certainly happens shows, else what all the others do."""
    for use in uses:
        size = use.sizes.get(key) if use.certain else None
        if size is not None and spellable(size):
            return size
    unsure = [use for use in uses if not use.certain]
    size = _same(unsure, key) or _by_presence(unsure, key)
    return size if size is not None and spellable(size) else None


def _same(uses: Sequence[Use], key: str) -> Expr | None:
    """The size that all uses show."""
    sizes = [use.sizes.get(key) for use in uses]
    return sizes[0] if sizes and all(size == sizes[0] for size in sizes) else None


def _by_presence(uses: Sequence[Use], key: str) -> Expr | None:
    """A choice by whether an optional argument is given: its own size if it is.

    Every use then stands where it is given or where it is None, and Linen's initial call has it or
    not. The constructor sees that in the size of the argument, which is None without it.
    """
    paths = [path for path in (uses[0].presence if uses else ()) if _decides(path, uses)]
    if len(paths) != 1:
        return None
    path = paths[0]
    yes = _same([use for use in uses if use.presence[path]], key)
    no = _same([use for use in uses if not use.presence[path]], key)
    own = ex.input_size(path, -1)
    if yes is None or no is None or yes != own or own.names & no.names:
        return None
    return ex.choose(ex.call_fact(path, ex.GIVEN), yes, no)


def _decides(path: str, uses: Sequence[Use]) -> bool:
    """Whether it is known for every use, with both answers."""
    return {use.presence.get(path) if use.primary else None for use in uses} == {True, False}


def _is_covered(arm: _Arm, arms: Iterable[_Arm]) -> bool:
    """Whether calls that happen whenever those of ``arm`` do show the size."""
    wider = [one for one in arms if one.size is not None and one.conditions < arm.conditions]
    return any(one.certain or one.size == arm.size for one in wider)


def _choice(arms: Sequence[_Arm]) -> Expr | None:
    """The size that every arm shows, or a choice between them; None when some arm shows none."""
    *firsts, last = arms
    result = last.size
    for arm in reversed(firsts):
        if arm.size is None or result is None:
            return None
        if arm.size != result:
            test = _all_of(arm.conditions)
            result = ex.choose(test, arm.size, result) if test is not None else None
    return result


def _all_of(conditions: frozenset[Expr]) -> Expr | None:
    """The conditions as one; None when ``__init__`` cannot evaluate them where it builds."""
    if not all(ex.is_input(name) for one in conditions for name in one.names):
        return None
    nodes = [one.node for one in sorted(conditions, key=lambda one: one.text)]
    if not nodes:
        return None
    return Expr(nodes[0] if len(nodes) == 1 else ast.BoolOp(ast.And(), nodes))
