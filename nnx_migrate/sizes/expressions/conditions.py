"""Conditions: known, an expression that ``__init__`` can test, or nobody knows."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import given_when, is_instance, is_none
from nnx_migrate.abstract.values import (
    Array,
    Choice,
    Class,
    Instance,
    Library,
    Sequence,
    Static,
    Submodule,
    Unknown,
    Value,
)
from nnx_migrate.constructs import is_linen
from nnx_migrate.sizes.attributes import ShapeOf
from nnx_migrate.sizes.expressions.doubtful import doubtful
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.initial_call import initial_fact
from nnx_migrate.sizes.presence import sides
from nnx_migrate.sizes.statics import static_of

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


STRIDED = (
    "a strided layer is taken to change the size of its input here: where that is 1 already, Linen"
    " builds nothing for it"
)
HAS = f"{ex.FOREIGN}hasattr__"  # hasattr(self, name), which is the same in all calls


def truth(interpreter: Interpreter, node: ast.expr, frame: Frame) -> bool | Expr | None:
    """Truth of a condition: known, an expression over fields and sizes, or None."""
    test = _truth(interpreter, node, frame)
    noted = isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp) or is_told(test)
    if isinstance(test, Expr) and noted:
        interpreter.note(node, Static(test), frame)
    if is_told(test) and interpreter.primary:
        interpreter.initial_facts.add(id(node))
    return test


def is_told(test: bool | Expr | None) -> bool:
    """Whether a condition hangs on what the constructor is told about the initial call."""
    return isinstance(test, Expr) and any(ex.fact_of(name) for name in test.names)


def _truth(interpreter: Interpreter, node: ast.expr, frame: Frame) -> bool | Expr | None:
    match node:
        case ast.BoolOp(op=op, values=values):
            return _junction(interpreter, isinstance(op, ast.And), values, frame)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = truth(interpreter, operand, frame)
            if isinstance(inner, bool):
                return not inner
            return Expr(ast.UnaryOp(ast.Not(), inner.node)) if inner else None
        case ast.Compare():
            return _compare(interpreter, node, frame)
        case ast.Call(func=ast.Name(id="isinstance"), args=[tested, cls]):
            return _is_instance(interpreter, tested, cls, frame)
        case ast.Call(func=ast.Name(id="hasattr"), args=[owner, ast.Constant(value=str(name))]):
            is_own = interpreter.evaluate(owner, frame) is interpreter.root
            return ex.name(f"{HAS}{name}") if is_own else None
        case ast.Name(id=name) if fact := initial_fact(interpreter, frame.env.get(name), ex.TRUTH):
            return fact
    value = interpreter.evaluate(node, frame)
    if isinstance(value, Static) and not value.expr.is_constant:
        return value.expr
    if isinstance(value, Unknown) and isinstance(node, ast.Name) and node.id in frame.tests:
        return _truth(interpreter, frame.tests[node.id], frame)
    return truth_of(value)


def truth_of(value: Value) -> bool | None:
    """Whether Python takes a value for true, where that is known."""
    if isinstance(value, Static):
        return bool(value.expr.constant) if value.expr.is_constant else None
    if isinstance(value, Sequence):
        return bool(value.items)
    return True if isinstance(value, Function | Instance | Submodule | Class) else None


def _is_instance(
    interpreter: Interpreter, value: ast.expr, cls: ast.expr, frame: Frame
) -> bool | Expr | None:
    """``isinstance`` of submodules: which one it is hangs on no call argument."""
    content = interpreter.evaluate(value, frame)
    options = content.options if isinstance(content, Choice) else (content,)
    symbol = interpreter.project.resolve(cls, frame.scope)
    is_of_modules = symbol in interpreter.project.linen or is_linen(symbol)
    answers = {
        False if is_of_modules and _is_function(one) else is_instance(one, symbol)
        for one in options
    }
    if None in answers:
        return None
    return answers.pop() if len(answers) == 1 else ex.name(f"{ex.FOREIGN}isinstance")


def _is_function(value: Value) -> bool:
    """Whether a value is a function of the project, or one of jax's or Linen's: ``nn.gelu``."""
    if isinstance(value, Library):
        is_known = value.symbol.startswith(("jax.", "flax.linen."))
        return is_known and value.symbol.rpartition(".")[2].islower()
    return isinstance(value, Function)


def _junction(
    interpreter: Interpreter, is_and: bool, nodes: list[ast.expr], frame: Frame
) -> bool | Expr | None:
    parts: list[bool | Expr | None] = []
    with ExitStack() as before:  # an operand is reached where those before it left it open
        for one in nodes:
            part = truth(interpreter, one, frame)
            if part is (not is_and):
                return not is_and
            parts.append(part)
            if not isinstance(part, bool):
                met, unmet = sides(part, one, frame)
                before.enter_context(interpreter.on(met if is_and else unmet))
            if one is nodes[0]:  # those after it may not run
                before.enter_context(doubtful(interpreter, frame, *nodes[1:]))
    return join_truths(parts, is_and=is_and)


def join_truths(parts: Iterable[bool | Expr | None], *, is_and: bool) -> bool | Expr | None:
    """The truth of an ``and``, or an ``or``, by that of its parts."""
    open_parts = []
    for part in parts:
        if part is (not is_and):
            return part
        if not isinstance(part, bool):
            open_parts.append(part)
    if not open_parts:
        return is_and
    known = [part.node for part in open_parts if part is not None]
    if len(known) != len(open_parts):
        return None
    make = ast.And() if is_and else ast.Or()
    return Expr(known[0]) if len(known) == 1 else Expr(ast.BoolOp(make, known))


def _compare(interpreter: Interpreter, node: ast.Compare, frame: Frame) -> bool | Expr | None:
    values = [interpreter.evaluate(one, frame) for one in (node.left, *node.comparators)]
    if len(values) == 2 and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        negated = isinstance(node.ops[0], ast.IsNot | ast.NotEq)
        for one, other in (values, values[::-1]):
            if isinstance(other, Static) and other.expr.text == "None":
                known = is_none(one)
                if known is not None:
                    return known is not negated
                presence_fact = initial_fact(interpreter, one, ex.GIVEN) or given_when(one)
                if presence_fact is not None:
                    return (
                        presence_fact
                        if negated
                        else Expr(ast.UnaryOp(ast.Not(), presence_fact.node))
                    )
        shapes_differ = _compare_shapes(interpreter, node, values)
        if shapes_differ is not None:
            if isinstance(shapes_differ, bool):
                return shapes_differ is negated
            return shapes_differ if negated else Expr(ast.UnaryOp(ast.Not(), shapes_differ.node))
    parts = [static_of(value) for value in values]
    if any(part is None for part in parts):
        return None
    known_parts = [part for part in parts if part]
    if all(part.is_constant for part in known_parts):
        return _known_comparison(node, known_parts)
    if len(parts) == 2 and known_parts[0] == known_parts[1]:
        if isinstance(node.ops[0], ast.Eq | ast.LtE | ast.GtE):
            return True
        if isinstance(node.ops[0], ast.NotEq | ast.Lt | ast.Gt):
            return False
    nodes = [part.node for part in known_parts]
    return Expr(ast.Compare(nodes[0], node.ops, nodes[1:]))


def _known_comparison(node: ast.Compare, parts: list[Expr]) -> bool | None:
    table: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Is: lambda a, b: a is b or a == b,
        ast.IsNot: lambda a, b: a != b,
        ast.In: lambda a, b: operator.contains(b, a),
        ast.NotIn: lambda a, b: not operator.contains(b, a),
    }
    try:
        pairs = zip(parts, node.ops, parts[1:], strict=False)
        return all(table[type(op)](one.constant, two.constant) for one, op, two in pairs)
    except TypeError:
        return None


def _compare_shapes(
    interpreter: Interpreter, node: ast.Compare, values: list[Value]
) -> bool | Expr | None:
    """Whether two ``.shape`` values differ, axis by axis from the last."""
    one, two = values
    if not (isinstance(one, ShapeOf) and isinstance(two, ShapeOf)):
        return None
    rank = one.shape_of.rank or two.shape_of.rank
    arrays = (one.shape_of, two.shape_of)
    first, second = (array.with_one_batch_axis(rank) if rank else array for array in arrays)
    tests: list[ast.expr] = []
    for index in range(-max(len(first.tail), len(second.tail), 1), 0):
        left, right = first.axis(index), second.axis(index)
        if left is None or right is None:
            if left is not right and (index == -1 or not _is_lead(first, second, index)):
                return None
            continue
        if left.key == right.key:
            continue
        strided = _stride_between(left, right) or _stride_between(right, left)
        if strided is not None:
            interpreter.ask(node, STRIDED)
            tests.append(ast.Compare(strided.node, [ast.NotEq()], [ast.Constant(1)]))
        else:
            tests.append(ast.Compare(left.node, [ast.NotEq()], [right.node]))
    if not tests:
        return False
    return Expr(tests[0]) if len(tests) == 1 else Expr(ast.BoolOp(ast.Or(), tests))


def _is_lead(first: Array, second: Array, index: int) -> bool:
    rank = first.rank or second.rank
    return rank is not None and index == -rank


def _stride_between(before: Expr, after: Expr) -> Expr | None:
    """``s`` when ``after`` is ``-(-before // s)``: they differ exactly when s != 1 (and before > 1)."""
    match after.node:
        case ast.UnaryOp(
            op=ast.USub(),
            operand=ast.BinOp(
                left=ast.UnaryOp(op=ast.USub(), operand=inner), op=ast.FloorDiv(), right=stride
            ),
        ) if Expr(inner).key == before.key:
            return Expr(stride)
    return None
