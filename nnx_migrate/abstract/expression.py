"""Small symbolic expressions: what a static value is, as Python syntax valid in ``__init__``.

An expression is an ``ast`` tree over fields (``self.x``), literals, loop variables and *input
sizes*: names such as ``size__x__m1`` that stand for axis -1 of call argument ``x`` until a
constructor argument is chosen for them.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, cast

from nnx_migrate.source.walking import names_in

Const = int | float | str | bool | None | tuple["Const", ...]

_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}

_BUILTINS = frozenset(("self", "min", "max", "len", "int"))
_INPUT = "size__"
_OPAQUE = "opaque_at_line_"
GIVEN, TRUTH = "given", "truth"  # what a constructor may be told about an argument of the call
_FACTS = (GIVEN, TRUTH)
FOREIGN = "foreign__"  # a name of another module that __init__ cannot spell


@dataclass(frozen=True, eq=False)
class Expr:
    """One static value; equality is equality of normalised text."""

    node: ast.expr

    @cached_property
    def text(self) -> str:
        """Python text."""
        return ast.unparse(self.node)

    @cached_property
    def key(self) -> str:
        """Text in which sums and products are sorted, for comparison."""
        return _key(self.node)

    @cached_property
    def names(self) -> frozenset[str]:
        """Free names; ``self`` and the builtins that sizes use are none."""
        found = names_in(self.node)
        return frozenset(found - _BUILTINS)

    @cached_property
    def is_constant(self) -> bool:
        """Whether the value is known."""
        if isinstance(self.node, ast.Constant | ast.Name | ast.Attribute):  # most are
            return isinstance(self.node, ast.Constant)
        try:
            ast.literal_eval(self.node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return False
        return True

    @property
    def constant(self) -> Const:
        """The known value. Raises ValueError when it is not constant."""
        node = self.node
        return cast(
            "Const", node.value if isinstance(node, ast.Constant) else ast.literal_eval(node)
        )

    def __eq__(self, other: object) -> bool:
        """Equality of normalised text."""
        return isinstance(other, Expr) and self.key == other.key

    def __hash__(self) -> int:
        """Hash that agrees with equality."""
        return hash(self.key)

    def __repr__(self) -> str:
        """Text, for messages."""
        return f"Expr({self.text})"


def literal(value: Const) -> Expr:
    """The expression of a known value."""
    return parse(repr(value))


def name(identifier: str) -> Expr:
    """A free name."""
    return Expr(ast.Name(identifier, ast.Load()))


@lru_cache(maxsize=10_000)
def parse(text: str) -> Expr:
    """Expression from Python text: one for each text, so its tree is not to be changed."""
    return Expr(ast.parse(text, mode="eval").body)


def input_size(argument: str, axis: int) -> Expr:
    """Axis ``axis`` of call argument ``argument`` (a dotted or indexed path below a parameter)."""
    side = f"m{-axis}" if axis < 0 else f"p{axis}"
    return name(f"{_INPUT}{_escape(argument)}__{side}")


def batch_size(argument: str) -> Expr:
    """The axes before those that a convolution goes over: one by most code, which may be none or several.

    It equals itself, so that ``y.reshape((y.shape[0], -1))`` has a size, and can be written nowhere.
    """
    return name(f"{FOREIGN}batch_of_{_escape(argument)}")


def is_batch(identifier: str) -> bool:
    """Whether a name stands for the size of a batch: that of an axis of an input."""
    return identifier.startswith(f"{FOREIGN}batch_of_")


def input_shape(argument: str) -> Expr:
    """The whole shape of a call argument."""
    return name(f"{_INPUT}{_escape(argument)}__all")


def parameter_of(path: str) -> str:
    """``x`` of the argument paths ``x``, ``x.nodes`` and ``x[0].edges``."""
    return path.partition(".")[0].partition("[")[0]


def call_fact(argument: str, fact: str) -> Expr:
    """What Linen's initial call has for a parameter: whether it is GIVEN, its TRUTH."""
    return name(f"{_INPUT}{argument}__{fact}")


def fact_of(identifier: str) -> str | None:
    """The fact that a name of :func:`call_fact` stands for; None for sizes."""
    side = identifier.rpartition("__")[2]
    return side if is_input(identifier) and side in _FACTS else None


def opaque_size(local: str, line: int) -> Expr:
    """The last axis of a local array of which nothing is known: seen only by what it is given to."""
    return name(f"{_INPUT}{_OPAQUE}{line}.{local}__m1".replace(".", "__dot__"))


def opaque_local(argument: str) -> str | None:
    """The local that an argument path of :func:`opaque_size` stands for."""
    if not argument.startswith(_OPAQUE):
        return None
    return argument.removeprefix(_OPAQUE).partition(".")[2]


def is_input(identifier: str) -> bool:
    """Whether a name stands for an input size."""
    return identifier.startswith(_INPUT)


def input_of(identifier: str) -> tuple[str, int | None]:
    """Argument path and axis of an input size; axis None is the whole shape, or a fact."""
    argument, _, side = identifier.removeprefix(_INPUT).rpartition("__")
    if side in ("all", *_FACTS):
        return _unescape(argument), None
    axis = int(side[1:])
    return _unescape(argument), -axis if side[0] == "m" else axis


def _escape(path: str) -> str:
    marked = path.replace(".", "__dot__").replace("[-", "__at__neg").replace("[", "__at__")
    return marked.replace("]", "")


def _unescape(path: str) -> str:
    head, *parts = path.split("__at__")
    indexed = head + "".join(_index(part) for part in parts)
    return indexed.replace("__dot__", ".")


def _index(part: str) -> str:
    key, mark, rest = part.partition("__")
    return f"[{key.replace('neg', '-')}]{mark}{rest}"


def binary(left: Expr, sign: ast.operator, right: Expr) -> Expr:
    """``left sign right``, folded when both are known, with the neutral elements removed.

    Constants meet: ``(n - 2) // 2 + 1`` is ``n // 2``, and half of that ``n // 4``; half of twice an
    input's size is that size. Of a field nobody knows whether it is a whole number.
    """
    if left.is_constant and right.is_constant:
        folded = _fold(ast.BinOp(left.node, sign, right.node))
        if folded is not None:
            return folded
    if isinstance(sign, ast.Mult):
        if left.is_constant and left.constant == 1:
            return right
        if right.is_constant and right.constant == 1:
            return left
    if isinstance(sign, ast.Add | ast.Sub) and right.is_constant and right.constant == 0:
        return left
    if isinstance(sign, ast.Add) and left.is_constant and left.constant == 0:
        return right
    if isinstance(sign, ast.FloorDiv) and right.is_constant and right.constant == 1:
        return left
    return _join_constants(left, sign, right) or Expr(ast.BinOp(left.node, sign, right.node))


def _join_constants(left: Expr, sign: ast.operator, right: Expr) -> Expr | None:
    """A constant joined with the one that ``left`` ends with; None where they stay apart."""
    match left.node, sign, right.node:
        case (
            ast.BinOp(inner, ast.Add() | ast.Sub() as first, ast.Constant(value=int(one))),
            ast.Add() | ast.Sub(),
            ast.Constant(value=int(other)),
        ):
            total = _sign(first, one) + _sign(sign, other)
            added = ast.Add() if total >= 0 else ast.Sub()
            return binary(Expr(inner), added, literal(abs(total)))
        case (
            ast.BinOp(inner, ast.Add() | ast.Sub() as first, ast.Constant(value=int(one))),
            ast.FloorDiv(),
            ast.Constant(value=int(divisor)),
        ) if divisor > 0 and one % divisor == 0:
            return binary(binary(Expr(inner), sign, right), first, literal(one // divisor))
        case (
            ast.BinOp(inner, ast.FloorDiv(), ast.Constant(value=int(one))),
            ast.FloorDiv(),
            ast.Constant(value=int(other)),
        ) if one > 0 and other > 0:
            return binary(Expr(inner), sign, literal(one * other))
        case ast.BinOp(op=ast.Mult()), ast.FloorDiv(), ast.Constant(value=int(divisor)) if (
            divisor > 1
        ):
            return _quotient(left.node, divisor)
    return None


def _quotient(product: ast.expr, divisor: int) -> Expr | None:
    """A product of whole numbers without the ``divisor`` of one of its constants; None where none has it."""
    match product:
        case ast.Constant(value=int(number)) if number % divisor == 0:
            return literal(number // divisor)
        case ast.BinOp(left, ast.Mult() as sign, right) if _is_whole(left) and _is_whole(right):
            first, second = _quotient(left, divisor), _quotient(right, divisor)
            if first is not None:
                return binary(first, sign, Expr(right))
            if second is not None:
                return binary(Expr(left), sign, second)
    return None


def _is_whole(number: ast.expr) -> bool:
    """Whether an expression is surely a whole number: a constant, a size of an input, a product of them."""
    match number:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Name(id=name):
            return is_input(name) and input_of(name)[1] is not None
        case ast.BinOp(left, ast.Mult(), right):
            return _is_whole(left) and _is_whole(right)
    return False


def _sign(sign: ast.operator, value: int) -> int:
    return value if isinstance(sign, ast.Add) else -value


def difference(whole: Expr, part: Expr) -> Expr:
    """``whole - part`` of two sizes; of a sum that has ``part`` as a term, the other term."""
    match whole.node:
        case ast.BinOp(left, ast.Add(), right):
            if Expr(left) == part:
                return Expr(right)
            if Expr(right) == part:
                return Expr(left)
    return binary(whole, ast.Sub(), part)


def product(factors: list[Expr]) -> Expr:
    """Product of sizes; 1 when there are none."""
    result = literal(1)
    for factor in factors:
        result = binary(result, ast.Mult(), factor)
    return result


def total(terms: list[Expr]) -> Expr:
    """Sum of sizes."""
    result = literal(0)
    for term in terms:
        result = binary(result, ast.Add(), term)
    return result


def negation(test: Expr) -> Expr:
    """A condition that holds when ``test`` does not."""
    match test.node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Expr(operand)
    return Expr(ast.UnaryOp(ast.Not(), test.node))


def is_given(one: Expr) -> Expr:
    """``one is not None``."""
    return Expr(ast.Compare(one.node, [ast.IsNot()], [ast.Constant(None)]))


def greater(one: Expr, other: Expr) -> Expr:
    """``one > other``."""
    return Expr(ast.Compare(one.node, [ast.Gt()], [other.node]))


def greatest(one: Expr, other: Expr) -> Expr:
    """``max(one, other)``."""
    return Expr(ast.Call(ast.Name("max", ast.Load()), [one.node, other.node], []))


def choose(test: Expr, yes: Expr, no: Expr) -> Expr:
    """``yes if test else no``."""
    return yes if yes == no else Expr(ast.IfExp(test.node, yes.node, no.node))


def choose_size(test: Expr, yes: Expr, no: Expr) -> Expr:
    """As `choose`, of whole numbers: ``width if size != width else size`` is ``width``."""
    match test.node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as equal], comparators=[right]):
            if {yes, no} == {Expr(left), Expr(right)}:  # where they are equal either is the other
                return no if isinstance(equal, ast.Eq) else yes
    return choose(test, yes, no)


def substitute(expression: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with free names replaced."""
    if not expression.names & values.keys():
        return expression

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return values[node.id].node if node.id in values else node

    copied = ast.parse(expression.text, mode="eval").body
    return Expr(Replace().visit(copied))


def _fold(node: ast.expr) -> Expr | None:
    if not isinstance(node, ast.BinOp) or type(node.op) not in _ARITHMETIC:
        return None
    left, right = ast.literal_eval(node.left), ast.literal_eval(node.right)
    if isinstance(node.op, ast.Pow) and not (isinstance(right, int | float) and abs(right) < 64):
        return None
    try:
        value = _ARITHMETIC[type(node.op)](left, right)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return literal(value) if isinstance(value, int | float | str | tuple) else None


def _key(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add):
        mark = "*" if isinstance(node.op, ast.Mult) else "+"
        return "(" + mark.join(sorted(_flatten(node, type(node.op)))) + ")"
    if isinstance(node, ast.BinOp):
        return f"({_key(node.left)}{type(node.op).__name__}{_key(node.right)})"
    if isinstance(node, ast.Attribute):
        return f"{_key(node.value)}.{node.attr}"
    return ast.unparse(node)


def _flatten(node: ast.expr, kind: type[ast.operator]) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
        return [*_flatten(node.left, kind), *_flatten(node.right, kind)]
    return [_key(node)]
