"""The LibCST node of an ast node, by walking both trees of one file side by side.

Neither positions nor LibCST's metadata are needed, so this costs a fraction of LibCST's parse. Only
what lies on the way to the wanted places is walked.
"""

from __future__ import annotations

import ast
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst as cst

Pairs = dict[ast.AST, cst.CSTNode]


class PairingError(Exception):
    """The two trees do not run side by side: please report this with the file."""


def pair(tree: ast.Module, module: cst.Module, places: Iterable[ast.AST] | None = None) -> Pairs:
    """LibCST nodes by ast node: statements, expressions, arguments, keywords, aliases, handlers.

    Args:
        places: the nodes that are wanted; what they stand in is found, too. None: every node.

    Raises:
        PairingError: one tree has something that the other has not.
    """
    walk = _Pairing(None if places is None else _starts(places))
    walk.pairs[tree] = module
    try:
        walk.block(tree.body, module.body)
    except (ValueError, AttributeError, KeyError, TypeError, IndexError) as error:
        raise PairingError(f"{type(error).__name__}: {error}") from error
    return walk.pairs


def _starts(places: Iterable[ast.AST]) -> list[tuple[int, int]]:
    return sorted((getattr(one, "lineno", 0), getattr(one, "col_offset", 0)) for one in places)


def _flat(body: Sequence[cst.CSTNode]) -> list[cst.CSTNode]:
    """Statements of a block as ast lists them."""
    found: list[cst.CSTNode] = []
    for one in body:
        if isinstance(one, cst.SimpleStatementLine):
            found.extend(one.body)
        else:
            found.append(one)
    return found


class _Pairing:
    """One walk over both trees; ``starts`` are where the wanted places begin."""

    def __init__(self, starts: list[tuple[int, int]] | None) -> None:
        self.starts = starts
        self.pairs: Pairs = {}

    def holds_target(self, a: Any) -> bool:
        """Whether a wanted place begins inside this node."""
        if self.starts is None:
            return True
        first = (a.lineno, a.col_offset)
        if getattr(a, "decorator_list", None):
            first = min(first, (a.decorator_list[0].lineno, 0))
        at = bisect_left(self.starts, first)
        return at < len(self.starts) and self.starts[at] < (a.end_lineno, a.end_col_offset)

    def block(self, statements: Sequence[ast.stmt], body: Any) -> None:
        """The statements of a suite."""
        nodes = _flat(body if isinstance(body, Sequence) else body.body)
        if len(statements) != len(nodes):
            raise PairingError(f"{len(statements)} statements, {len(nodes)} nodes")
        for a, c in zip(statements, nodes, strict=True):
            self.statement(a, c)

    def statement(self, a: ast.stmt, c: Any) -> None:
        """One statement and what is in it."""
        if not self.holds_target(a):
            return
        self.pairs[a] = c
        walk = _STATEMENTS.get(type(a))
        if walk is not None:
            walk(self, a, c)

    def expression(self, a: Any, c: Any) -> None:
        """One expression and what is in it."""
        if not self.holds_target(a):
            return
        self.pairs[a] = c
        walk = _EXPRESSIONS.get(type(a)) or (_call if isinstance(a, ast.Call) else None)
        if walk is not None:
            walk(self, a, c)

    def maybe(self, a: ast.expr | None, c: Any) -> None:
        """An expression that may be left out."""
        if a is not None:
            self.expression(a, c)

    def all(self, expressions: Sequence[ast.expr], nodes: Sequence[Any]) -> None:
        """As many expressions as nodes."""
        for a, c in zip(expressions, nodes, strict=True):
            self.expression(a, c)

    def keywords(self, keywords: Sequence[ast.keyword], args: Sequence[cst.Arg]) -> None:
        """Keyword arguments, ``**options`` included."""
        for one, node in zip(keywords, args, strict=True):
            self.pairs[one] = node
            self.expression(one.value, node.value)

    def parameters(self, a: ast.arguments, c: cst.Parameters) -> None:
        """Parameters, their annotations and defaults."""
        star = [c.star_arg] if isinstance(c.star_arg, cst.Param) else []
        plain = [*c.posonly_params, *c.params]
        mine = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else [])]
        mine += [*a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]
        theirs = [*plain, *star, *c.kwonly_params, *([c.star_kwarg] if c.star_kwarg else [])]
        for one, node in zip(mine, theirs, strict=True):
            self.pairs[one] = node
            self.maybe(one.annotation, node.annotation and node.annotation.annotation)
        self.all(a.defaults, [one.default for one in plain if one.default])
        for default, node in zip(a.kw_defaults, c.kwonly_params, strict=True):
            self.maybe(default, node.default)

    def otherwise(self, statements: Sequence[ast.stmt], node: Any) -> None:
        """``else`` and ``finally``, which LibCST wraps."""
        if node is not None:
            self.block(statements, node.body)


def _function(walk: _Pairing, a: Any, c: Any) -> None:
    walk.all(a.decorator_list, [one.decorator for one in c.decorators])
    walk.parameters(a.args, c.params)
    walk.maybe(a.returns, c.returns and c.returns.annotation)
    walk.block(a.body, c.body)


def _class(walk: _Pairing, a: ast.ClassDef, c: Any) -> None:
    walk.all(a.decorator_list, [one.decorator for one in c.decorators])
    for one, node in zip(a.bases, c.bases, strict=True):
        _item(walk, one, node)
    walk.keywords(a.keywords, c.keywords)
    walk.block(a.body, c.body)


def _item(walk: _Pairing, a: ast.expr, node: Any) -> None:
    """An element of a display or argument list, which LibCST wraps; it may be starred."""
    if isinstance(a, ast.Starred):
        walk.pairs[a] = node
        walk.expression(a.value, node.value)
    else:
        walk.expression(a, node.value)


def _if(walk: _Pairing, a: ast.If, c: Any) -> None:
    walk.expression(a.test, c.test)
    walk.block(a.body, c.body)
    if isinstance(c.orelse, cst.If):
        walk.statement(a.orelse[0], c.orelse)
    else:
        walk.otherwise(a.orelse, c.orelse)


def _while(walk: _Pairing, a: ast.While, c: Any) -> None:
    walk.expression(a.test, c.test)
    walk.block(a.body, c.body)
    walk.otherwise(a.orelse, c.orelse)


def _for(walk: _Pairing, a: Any, c: Any) -> None:
    walk.expression(a.target, c.target)
    walk.expression(a.iter, c.iter)
    walk.block(a.body, c.body)
    walk.otherwise(a.orelse, c.orelse)


def _with(walk: _Pairing, a: Any, c: Any) -> None:
    for item, node in zip(a.items, c.items, strict=True):
        walk.pairs[item] = node
        walk.expression(item.context_expr, node.item)
        walk.maybe(item.optional_vars, node.asname and node.asname.name)
    walk.block(a.body, c.body)


def _try(walk: _Pairing, a: Any, c: Any) -> None:
    walk.block(a.body, c.body)
    for handler, node in zip(a.handlers, c.handlers, strict=True):
        walk.pairs[handler] = node
        walk.maybe(handler.type, node.type)
        walk.block(handler.body, node.body)
    walk.otherwise(a.orelse, c.orelse)
    walk.otherwise(a.finalbody, c.finalbody)


def _match(walk: _Pairing, a: ast.Match, c: Any) -> None:
    walk.expression(a.subject, c.subject)
    for one, node in zip(a.cases, c.cases, strict=True):
        walk.pairs[one] = node
        _pattern(walk, one.pattern, node.pattern)
        walk.maybe(one.guard, node.guard)
        walk.block(one.body, node.body)


def _pattern(walk: _Pairing, a: Any, c: Any) -> None:
    """The class of a class pattern and the value of a value pattern; other patterns name nothing."""
    if isinstance(a, ast.MatchClass):
        walk.expression(a.cls, c.cls)
        for one, node in zip(a.patterns, c.patterns, strict=True):
            _pattern(walk, one, node.value)
        for one, node in zip(a.kwd_patterns, c.kwds, strict=True):
            _pattern(walk, one, node.pattern)
    elif isinstance(a, ast.MatchValue):
        walk.expression(a.value, c.value)
    elif isinstance(a, ast.MatchAs) and a.pattern is not None:
        _pattern(walk, a.pattern, c.pattern)
    elif isinstance(a, ast.MatchOr):
        for one, node in zip(a.patterns, c.patterns, strict=True):
            _pattern(walk, one, node.pattern)


def _assign(walk: _Pairing, a: ast.Assign, c: Any) -> None:
    walk.all(a.targets, [one.target for one in c.targets])
    walk.expression(a.value, c.value)


def _pair_annotation(walk: _Pairing, a: ast.AnnAssign, c: Any) -> None:
    walk.expression(a.target, c.target)
    walk.expression(a.annotation, c.annotation.annotation)
    walk.maybe(a.value, c.value)


def _raise(walk: _Pairing, a: ast.Raise, c: Any) -> None:
    walk.maybe(a.exc, c.exc)
    walk.maybe(a.cause, c.cause and c.cause.item)


def _delete(walk: _Pairing, a: ast.Delete, c: Any) -> None:
    if len(a.targets) == 1:
        walk.expression(a.targets[0], c.target)
    else:
        walk.all(a.targets, [one.value for one in c.target.elements])


def _import(walk: _Pairing, a: Any, c: Any) -> None:
    if not isinstance(c.names, cst.ImportStar):
        walk.pairs.update(zip(a.names, c.names, strict=True))


def _call(walk: _Pairing, a: ast.Call, c: Any) -> None:
    """A call; what its class has beside ``ast.Call``'s fields was taken out of its keywords."""
    apart = {name: getattr(a, name) for name in a._fields[3:] if getattr(a, name) is not None}
    if apart:
        walk.pairs[a.func] = c.func
    else:
        walk.expression(a.func, c.func)
    plain = [one for one in c.args if one.keyword is None and one.star != "**"]
    for one, node in zip(a.args, plain, strict=True):
        _item(walk, one, node)
    named = [one for one in c.args if one.keyword or one.star == "**"]
    for one in [one for one in named if one.keyword and one.keyword.value in apart]:
        walk.expression(apart[one.keyword.value], one.value)
        named.remove(one)
    walk.keywords(a.keywords, named)


def _boolean(walk: _Pairing, a: ast.BoolOp, c: Any) -> None:
    """``a or b or c`` is one node in ast, and nested to the left in LibCST."""
    operator, nodes, left = type(c.operator), [c.right], c.left
    while isinstance(left, cst.BooleanOperation) and type(left.operator) is operator:
        if left.lpar:
            break
        nodes.append(left.right)
        left = left.left
    walk.all(a.values, [left, *reversed(nodes)])


def _elements(walk: _Pairing, a: Any, c: Any) -> None:
    for one, node in zip(a.elts, c.elements, strict=True):
        _item(walk, one, node)


def _subscript(walk: _Pairing, a: ast.Subscript, c: Any) -> None:
    walk.expression(a.value, c.value)
    (first, *more) = c.slice
    single = not more and isinstance(first.comma, cst.MaybeSentinel)
    if single and not getattr(first.slice, "star", None):
        _index(walk, a.slice, first.slice)
        return
    walk.pairs[a.slice] = c
    for one, element in zip(getattr(a.slice, "elts", ()), c.slice, strict=True):
        _index(walk, one, element.slice)


def _index(walk: _Pairing, a: ast.expr, node: Any) -> None:
    if not isinstance(a, ast.Slice):
        _item(walk, a, node)
        return
    walk.pairs[a] = node
    for one, part in ((a.lower, node.lower), (a.upper, node.upper), (a.step, node.step)):
        walk.maybe(one, part)


def _dict(walk: _Pairing, a: ast.Dict, c: Any) -> None:
    for key, value, node in zip(a.keys, a.values, c.elements, strict=True):
        walk.maybe(key, getattr(node, "key", None))
        walk.expression(value, node.value)


def _comprehension(walk: _Pairing, a: Any, c: Any) -> None:
    for name, theirs in (("key", "key"), ("value", "value"), ("elt", "elt")):
        walk.maybe(getattr(a, name, None), getattr(c, theirs, None))
    node = c.for_in
    for one in a.generators:
        walk.pairs[one] = node
        walk.expression(one.target, node.target)
        walk.expression(one.iter, node.iter)
        walk.all(one.ifs, [condition.test for condition in node.ifs])
        node = node.inner_for_in


def _lambda(walk: _Pairing, a: ast.Lambda, c: Any) -> None:
    walk.parameters(a.args, c.params)
    walk.expression(a.body, c.body)


def _compare(walk: _Pairing, a: ast.Compare, c: Any) -> None:
    walk.expression(a.left, c.left)
    walk.all(a.comparators, [one.comparator for one in c.comparisons])


def _pair_string_parts(walk: _Pairing, a: ast.JoinedStr, c: Any) -> None:
    """Expressions in an f-string, also where plain strings stand beside it."""
    strings = (one for one in _pieces(c) if isinstance(one, cst.FormattedString))
    _pair_format_parts(walk, a, [part for one in strings for part in one.parts])


def _pair_format_parts(walk: _Pairing, a: ast.JoinedStr, parts: Sequence[Any]) -> None:
    """Expressions in the parts of an f-string, and in their formats."""
    fields = [one for one in a.values if isinstance(one, ast.FormattedValue)]
    nodes = [one for one in parts if isinstance(one, cst.FormattedStringExpression)]
    for one, node in zip(fields, nodes, strict=True):
        _pair_old_string_parts(walk, one.value, node.expression)
        if isinstance(one.format_spec, ast.JoinedStr) and node.format_spec:
            _pair_format_parts(walk, one.format_spec, node.format_spec)


def _pair_old_string_parts(walk: _Pairing, a: ast.expr, c: Any) -> None:
    """Before Python 3.12 what stands in an f-string has no positions of its own."""
    starts, walk.starts = walk.starts, None
    walk.expression(a, c)
    walk.starts = starts


def _pieces(c: Any) -> list[Any]:
    if isinstance(c, cst.ConcatenatedString):
        return [*_pieces(c.left), *_pieces(c.right)]
    return [c]


def _fields(*names: tuple[str, str]) -> Callable[[_Pairing, Any, Any], None]:
    def walk_fields(walk: _Pairing, a: Any, c: Any) -> None:
        for mine, theirs in names:
            walk.maybe(getattr(a, mine), getattr(c, theirs))

    return walk_fields


def _yield_from(walk: _Pairing, a: ast.YieldFrom, c: Any) -> None:
    walk.expression(a.value, c.value.item)


_Walk = Callable[[_Pairing, Any, Any], None]
_STATEMENTS: dict[type, _Walk] = {
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
    ast.Assign: _assign,
    ast.AugAssign: _fields(("target", "target"), ("value", "value")),
    ast.AnnAssign: _pair_annotation,
    ast.Expr: _fields(("value", "value")),
    ast.Return: _fields(("value", "value")),
    ast.Raise: _raise,
    ast.Assert: _fields(("test", "test"), ("msg", "msg")),
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import,
}
if sys.version_info >= (3, 12):
    _STATEMENTS[ast.TypeAlias] = _fields(("value", "value"))
_EXPRESSIONS: dict[type, _Walk] = {
    ast.Attribute: _fields(("value", "value")),
    ast.Call: _call,
    ast.BoolOp: _boolean,
    ast.BinOp: _fields(("left", "left"), ("right", "right")),
    ast.UnaryOp: _fields(("operand", "expression")),
    ast.Compare: _compare,
    ast.IfExp: _fields(("body", "body"), ("test", "test"), ("orelse", "orelse")),
    ast.Lambda: _lambda,
    ast.Subscript: _subscript,
    ast.Tuple: _elements,
    ast.List: _elements,
    ast.Set: _elements,
    ast.Dict: _dict,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.NamedExpr: _fields(("target", "target"), ("value", "value")),
    ast.Await: _fields(("value", "expression")),
    ast.Yield: _fields(("value", "value")),
    ast.YieldFrom: _yield_from,
    ast.JoinedStr: _pair_string_parts,
}
