"""Expressions as LibCST nodes, so that whoever writes one never thinks of commas or parentheses.

A parameter of type `ExpressionLike` takes a node, or a dotted name as a string.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from nnx_migrate.edit.syntax import cst

Expression: TypeAlias = "cst.BaseExpression"
ExpressionLike: TypeAlias = "cst.BaseExpression | str"


@lru_cache(maxsize=1 << 10)  # what is laid out is measured again and again
def code_of(node: Any) -> str:
    """The text of a node that stands alone."""
    return cst.Module([]).code_for_node(node)


def tree_of(statements: Sequence[Any]) -> ast.Module:
    """The tree of new statements, by which checks judge what was written as Python will read it."""
    return ast.parse(cst.Module(list(statements)).code)


@lru_cache(maxsize=4096)
def expression(text: str) -> Expression:
    """The node of an expression that size inference found: its results are texts."""
    return cst.parse_expression(text)


@lru_cache(maxsize=4096)
def dotted_node(name: str) -> cst.Name | cst.Attribute:
    """``a.b.c`` as a node."""
    head, *rest = name.split(".")
    node: cst.Name | cst.Attribute = cst.Name(head)
    for one in rest:
        node = cst.Attribute(node, cst.Name(one))
    return node


def as_node(value: ExpressionLike) -> Expression:
    """A node as it is, a dotted name as a node."""
    found: Expression = dotted_node(value) if isinstance(value, str) else value
    return found


def string(value: str, quote: str | None = None) -> Expression:
    """A string literal, with Python's choice of quotes where none are asked for."""
    return cst.SimpleString(repr(value) if quote is None else f"{quote}{value}{quote}")


def in_quotes(node: cst.SimpleString, quote: str) -> cst.SimpleString:
    """The string in other quotes; itself where it has such a quote in it."""
    if quote in node.raw_value:
        return node
    return node.with_changes(value=f"{node.prefix}{quote}{node.raw_value}{quote}")


def integer(value: int) -> Expression:
    """An integer literal."""
    number = cst.Integer(str(abs(value)))
    return number if value >= 0 else cst.UnaryOperation(cst.Minus(), number)


# ---- parentheses


def parenthesize(node: Expression) -> Expression:
    """The expression in one more pair of parentheses."""
    return node.with_changes(
        lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()]
    )


def is_operand(node: Expression) -> bool:
    """Whether it stands as one operand anywhere: a name, a call, something in brackets."""
    if node.lpar:
        return True
    closed = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.List, cst.Dict, cst.Set)
    quoted = (cst.BaseString, cst.ListComp, cst.SetComp, cst.DictComp, cst.Ellipsis)
    return isinstance(node, (*closed, *quoted))


def operand(node: Expression) -> Expression:
    """The expression, in parentheses unless it is one operand."""
    return node if is_operand(node) else parenthesize(node)


def is_element(node: Expression) -> bool:
    """Whether it stands between commas as it is."""
    return bool(node.lpar) or not isinstance(node, loose_types())


def loose_types() -> tuple[type, ...]:
    """What needs parentheses between commas."""
    return cst.Tuple, cst.NamedExpr, cst.Yield, cst.GeneratorExp


def element(node: ExpressionLike) -> Expression:
    """The expression, in parentheses where it could not stand between commas."""
    node = as_node(node)
    return node if is_element(node) else parenthesize(node)


# ---- operators


def attribute(value: ExpressionLike, name: str) -> Expression:
    """``value.name``."""
    return cst.Attribute(operand(as_node(value)), cst.Name(name))


def item(value: ExpressionLike, index: Expression) -> Expression:
    """``value[index]``."""
    return cst.Subscript(operand(as_node(value)), [cst.SubscriptElement(cst.Index(index))])


def contents(value: ExpressionLike) -> Expression:
    """``value[...]``: what a Variable holds."""
    return item(value, cst.Ellipsis())


def display(elements: Iterable[Expression]) -> Expression:
    """``(a, b)``, ``(a,)`` of one."""
    found = [cst.Element(element(one), comma=_COMMA()) for one in elements]
    if len(found) != 1:
        found[-1:] = [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in found[-1:]]
    else:
        found = [found[0].with_changes(comma=cst.Comma())]
    return cst.Tuple(found)


def mapping(pairs: Iterable[tuple[Expression, Expression]]) -> Expression:
    """``{key: value}``."""
    found = [cst.DictElement(element(key), element(value)) for key, value in pairs]
    return cst.Dict([*(one.with_changes(comma=_COMMA()) for one in found[:-1]), *found[-1:]])


def _COMMA() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def elements_of(node: Expression) -> list[Expression] | None:
    """The elements of a tuple or list that is written out."""
    if not isinstance(node, cst.Tuple | cst.List):
        return None
    return [one.value for one in node.elements]


def operation(left: Expression, operator: type, right: Expression) -> Expression:
    """``left operator right`` of a binary operator."""
    is_number = isinstance(right, cst.BaseNumber)
    return cst.BinaryOperation(operand(left), operator(), right if is_number else operand(right))


def negation(test: Expression) -> Expression:
    """``not test``; of ``a is b`` it is ``a is not b``."""
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator) as target]):
            opposite = _opposite(operator)
            if opposite is not None:
                turned = target.with_changes(operator=opposite)
                return test.with_changes(comparisons=[turned])
    return cst.UnaryOperation(cst.Not(), operand(test))


def _opposite(operator: Any) -> Any:
    """The operator that says the contrary of any two objects."""
    match operator:
        case cst.Is():
            return cst.IsNot()
        case cst.IsNot():
            return cst.Is()
        case cst.In():
            return cst.NotIn()
        case cst.NotIn():
            return cst.In()
    return None


def conjunction(tests: Sequence[Expression]) -> Expression:
    """``a and b``; looser tests stand in parentheses."""
    first, *rest = [_tight(one) if len(tests) > 1 else one for one in tests]
    for one in rest:
        first = cst.BooleanOperation(first, cst.And(), one)
    return first


def _tight(test: Expression) -> Expression:
    """The test, in parentheses where ``and`` would take it apart."""
    loose = isinstance(test, cst.IfExp | cst.Lambda | cst.NamedExpr)
    is_or = isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or)
    return parenthesize(test) if (loose or is_or) and not test.lpar else test


def is_none(value: Expression) -> Expression:
    """``value is None``."""
    return cst.Comparison(operand(value), [cst.ComparisonTarget(cst.Is(), cst.Name("None"))])


def is_not_none(value: Expression) -> Expression:
    """``value is not None``."""
    target = cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))
    return cst.Comparison(operand(value), [target])


def either(test: Expression, body: Expression, orelse: Expression) -> Expression:
    """``body if test else orelse``."""
    loose = (cst.IfExp, cst.Lambda, cst.NamedExpr)
    parts = [
        parenthesize(one) if isinstance(one, loose) and not one.lpar else one
        for one in (body, test)
    ]
    return cst.IfExp(body=parts[0], test=parts[1], orelse=orelse)


def function(parameters: Sequence[str], body: Expression) -> Expression:
    """``lambda a, b: body``."""
    params = cst.Parameters([cst.Param(cst.Name(one)) for one in parameters])
    whitespace = cst.SimpleWhitespace(" ") if parameters else cst.SimpleWhitespace("")
    return cst.Lambda(params, element(body), whitespace_after_lambda=whitespace)


def generator(value: Expression, target: Any, over: Expression) -> Expression:
    """``value for target in over``, to be the only argument of a call."""
    return cst.GeneratorExp(value, cst.CompFor(target, over), lpar=[], rpar=[])


def numbered_name(name: str, index: Expression) -> Expression:
    """``f"name_{index}"``."""
    parts = [cst.FormattedStringText(f"{name}_"), cst.FormattedStringExpression(index)]
    return cst.FormattedString(parts)
