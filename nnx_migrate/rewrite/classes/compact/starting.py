"""What Linen's initial call does to a variable, and ``__init__`` does, too, because no input reaches it.

``v.value = f(kernel)`` runs in ``init`` as in every call, so the variable starts from what it assigns.
Where that follows from fields and parameters alone, ``__init__`` assigns it: it comes out the same
however often ``init`` calls the module. What reads state (``v.value += 1``) or a key does not, and only
``nnm.lazy_init`` runs it as often as ``init``. A key that only a variable starts from
(``key = self.make_rng("noise")``) is not drawn again in the call.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from nnx_migrate.rewrite.classes.compact.slicing import Slicer
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, is_variable, self_call
from nnx_migrate.rewrite.classes.reading.flow import (
    Bind,
    Exit,
    Step,
    binds,
    each_step,
)
from nnx_migrate.rewrite.classes.reading.taint import (
    Replaced,
    Taint,
    taint_of,
    tainted_name,
    value_of,
)
from nnx_migrate.source.bindings import target_names
from nnx_migrate.source.walking import each, walk


def with_updates(
    slicer: Slicer,
    init_steps: tuple[Step, ...],
    steps: tuple[Step, ...],
    items: Mapping[int, Item],
    taint: Taint,
    init_texts: Replaced,
    together: Collection[frozenset[int]] = (),
) -> tuple[Slicer, tuple[Step, ...], frozenset[int]]:
    """The slice ``init_steps`` with the updates of Linen's initial call, and the ids of these.

    Args:
      slicer: the one that found ``init_steps``, of a method without shapes of inputs.
      together: ids of all updates of one variable, which ``__init__`` does all or none.
    """
    updates = _initial_updates(steps, items, taint, init_texts)
    updates -= frozenset().union(*(one for one in together if not one <= updates))
    longer = replace(slicer, values=set(), shape_readers=set(), updates=updates)
    try:
        more = longer.run(steps) if updates else ()
    except ClassRefused:  # what an update reads is only known in the call
        more = ()
    if not more or not _needs_only_arrays(more, init_steps, longer.values, items):
        return slicer, init_steps, frozenset()
    if _unrepeatable(more, updates, items, init_texts) is not None:
        return slicer, init_steps, frozenset()
    return longer, more, updates


def check_updates(
    init_steps: Sequence[Step], items: Mapping[int, Item], init_texts: Replaced
) -> None:
    """Refuse a slice in which a shape hangs on state that the call updates: ``v.value += 1; x = x * v.value``.

    ``__init__`` would update it for its shape, and ``init`` once more by its call.

    Raises:
      Refused: at an update that does not give the same however often it runs.
    """
    updates: set[int] = set()
    variables: set[str] = set()
    for node in (one.node for one in binds(init_steps)):
        if isinstance(node, ast.Assign) and is_variable(node.value, items):
            variables |= {*target_names(node)}
        for owner in _update_targets(node):
            if isinstance(owner, ast.Attribute):  # self.v, of ``setup``
                raise _hangs_on_state(node)
            if isinstance(owner, ast.Name) and owner.id in variables:
                updates.add(id(node))
    unrepeatable = _unrepeatable(init_steps, frozenset(updates), items, init_texts)
    if unrepeatable is not None:
        raise _hangs_on_state(unrepeatable)


def _hangs_on_state(node: ast.AST) -> ClassRefused:
    reason = "what is built hangs on state that the call updates here"
    return ClassRefused(node, reason, "build from fields and inputs only", "compact")


def _update_targets(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns the value of: ``v`` of ``v.value = x``, ``self.v`` of ``self.v.value += 1``."""
    for one in each(node, ast.Attribute | ast.Subscript):
        if isinstance(one.ctx, ast.Store):
            while isinstance(one, ast.Subscript):
                one = one.value
            if isinstance(one, ast.Attribute) and one.attr == "value":
                yield one.value


_STATE = "<state>"  # stands for every variable and key; no name of Python's


def _unrepeatable(
    init_steps: Sequence[Step],
    updates: frozenset[int],
    items: Mapping[int, Item],
    init_texts: Replaced,
) -> ast.AST | None:
    """The first update that does not give the same however often it runs: it reads state or a key."""
    changing = (ItemKind.VARIABLE, ItemKind.STREAM)
    marks = {key: frozenset({_STATE}) for key, one in items.items() if one.kind in changing}
    reads = {**init_texts, **marks}
    taint = taint_of(init_steps, (_STATE,), reads)
    for step in binds(init_steps):
        if id(step.node) not in updates:
            continue
        before = taint.before[id(step)]
        is_assigned = isinstance(step.node, ast.Assign)
        if not is_assigned or tainted_name(value_of(step.node), before, reads) is not None:
            return step.node
    return None


def _initial_updates(
    steps: Sequence[Step], items: Mapping[int, Item], taint: Taint, init_texts: Replaced
) -> frozenset[int]:
    """Ids of the assignments to variables' values that every initial call does, inputs aside."""
    variables: set[str] = set()
    found: set[int] = set()
    for step in steps:
        if _may_leave(step):
            break
        if not isinstance(step, Bind):
            continue
        match step.node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_variable(value, items):
                variables.add(name)
            case (
                ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name), attr="value")])
                | ast.AugAssign(target=ast.Attribute(value=ast.Name(id=name), attr="value"))
            ) if name in variables:
                tainted = taint.before[id(step)]
                cause = tainted_name(value_of(step.node), tainted, init_texts)
                if name not in tainted and cause is None:
                    found.add(id(step.node))
    return frozenset(found)


def _may_leave(step: Step) -> bool:
    exits = (one for one in each_step((step,)) if isinstance(one, Exit))
    return any(not isinstance(one.node, ast.Raise) for one in exits)


def _needs_only_arrays(
    init_steps: Iterable[Step],
    before: Iterable[Step],
    values: Collection[int],
    items: Mapping[int, Item],
) -> bool:
    """Whether the statements that the updates add to ``__init__`` compute with arrays alone.

    Args:
      init_steps: the steps with the updates; ``before`` those without.
      values: ids of the items that ``__init__`` reads again.
    """
    if any(items[key].kind is ItemKind.SITE for key in values if key in items):
        return False
    known = {id(one.node) for one in binds(before)}
    added = [one.node for one in binds(init_steps) if id(one.node) not in known]
    calls = (one for node in added for one in walk(node) if self_call(one, "self"))
    return all(id(one) in items for one in calls)


def spent_keys(
    method: ast.FunctionDef, items: Mapping[int, Item], streams: Collection[int]
) -> Mapping[int, ast.Assign | None]:
    """Draws that only variables start from: ``id`` of the call -> the statement that goes with it.

    Args:
      items: the variables that ``__init__`` makes.
      streams: ids of the ``self.make_rng`` calls.
    """
    inside = {
        id(node)
        for item in items.values()
        if item.kind is ItemKind.VARIABLE
        for one in (*item.arguments, *(k.value for k in item.keywords))
        for node in walk(one)
    }
    found: dict[int, ast.Assign | None] = {key: None for key in streams if key in inside}
    names = each(method, ast.Name)
    for node in walk(method):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=call) if id(call) in streams:
                same = [one for one in names if one.id == name]
                loads = [one for one in same if isinstance(one.ctx, ast.Load)]
                if (
                    len(same) == len(loads) + 1
                    and loads
                    and all(id(one) in inside for one in loads)
                ):
                    found[id(call)] = node
    return found
