"""Reads of a part of a list of submodules: Linen makes parameters only for those that a call reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nnx_migrate.abstract.questions import held_modules
from nnx_migrate.abstract.values import Instance, RepeatedItem, Static, Submodule, Value
from nnx_migrate.sizes.expressions.sure_calls import (
    are_only_counted,
    are_surely_called,
    is_looped_over,
    is_surely_called,
)
from nnx_migrate.source.modules import Parents
from nnx_migrate.source.walking import each, walk

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def leave_part(interpreter: Interpreter, item: Value, node: ast.Subscript) -> None:
    """Leave the submodules of a list of unknown length to first calls where a part of it is read.

    In Linen those that no call reaches have no parameters, and in a part the first one met is not
    the first of the list, whose size would be taken. Not so ``ls[1:]`` beside ``ls[0]``, and ``ls[:-1]``
    beside ``ls[-1]``, where every call reaches both.
    """
    number = _number(node.slice)
    match node.slice:
        case ast.Slice(
            lower=None, upper=None, step=None | ast.UnaryOp(operand=ast.Constant(value=1))
        ):
            return
        case ast.Slice() if any(are_only_counted(one, node) for one in _parents(interpreter)):
            return
        case ast.Slice(lower=ast.Constant(value=1), upper=None, step=None) if _are_met(
            interpreter, node, 0
        ):
            return
        case ast.Slice(lower=None, upper=ast.expr() as last, step=None) if _number(
            last
        ) == -1 and _are_met(interpreter, node, -1):
            return
        case ast.Slice():
            interpreter.leave(item)
        case _ if number is not None and not _reads_rest(interpreter, node):
            interpreter.leave(item)


def leave_filter(interpreter: Interpreter, node: ast.expr, item: Value) -> None:
    """A part of a list of submodules that a test in a comprehension picks: ``[b for b in bs if test]``."""
    if isinstance(item, Submodule | Instance) and all(one is not item.call for one in walk(node)):
        interpreter.leave(item)


def leave_part_elsewhere(interpreter: Interpreter, item: Value, index: ast.expr) -> None:
    """The same, of a list that the class under analysis hands to another one."""
    if slices(index) or _number(index) is not None:
        interpreter.leave(item)


def _number(index: ast.expr) -> int | None:
    """The number of ``items[2]``, ``items[-1]``."""
    match index:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
    return None


def _are_met(interpreter: Interpreter, part: ast.Subscript, number: int) -> bool:
    """Whether every call reaches item ``number`` of a list, and all others in the loop over ``part``."""
    parents = next((one for one in _parents(interpreter) if one.of(part) is not None), None)
    if parents is None:
        return False
    singles = (one for one in _reads(interpreter, part) if _number(one.slice) == number)
    if not is_looped_over(parents, part):
        return number == 0 and any(True for _ in singles)
    around = parents.function(part)
    return are_surely_called(parents, part) and any(
        parents.function(one) is around and is_surely_called(parents, one) for one in singles
    )


def _parents(interpreter: Interpreter) -> Iterator[Parents]:
    return (one.module.parents for one in interpreter.root.info.mro)


def _reads_rest(interpreter: Interpreter, node: ast.Subscript) -> bool:
    """Whether the class reads more of the same list than single items."""
    return any(_number(one.slice) is None for one in _reads(interpreter, node))


def _reads(interpreter: Interpreter, node: ast.Subscript) -> list[ast.Subscript]:
    """The reads in brackets of the same expression in the class under analysis."""
    return [
        one
        for cls in interpreter.root.info.mro
        for one in each(cls.node, ast.Subscript)
        if ast.dump(one.value) == ast.dump(node.value)
    ]


def slices(index: ast.expr) -> bool:
    """Whether an index takes a part of what it reads."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(part, ast.Slice) for part in parts)


# ---- an index that a loop gives: whether its rounds meet every submodule of the list


def note_index(interpreter: Interpreter, base: RepeatedItem, key: Value, index: ast.expr) -> None:
    """Note whether the rounds of a loop go through the list of submodules one by one."""
    if _number(index) is not None:
        return
    calls = {id(one.call) for one in held_modules(base.item)}
    node = key.expr.node if isinstance(key, Static) else None
    name = node.id if isinstance(node, ast.Name) and isinstance(index, ast.Name) else None
    counts = [one.rounds for one in interpreter.loops if one.counters.get(name or "")]
    if base.length is not None and base.length in counts:
        interpreter.met |= calls
        return
    interpreter.picked |= calls
