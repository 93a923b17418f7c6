"""Expressions of the size interpreter: which of the other files knows a node, and the small ones."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.lists import joined_lists
from nnx_migrate.abstract.questions import constant
from nnx_migrate.abstract.values import Record, Sequence, Static, Unknown, Value
from nnx_migrate.sizes.expressions.calls import read_call
from nnx_migrate.sizes.expressions.comprehensions import read_comprehension, read_dict_comprehension
from nnx_migrate.sizes.expressions.conditional import conditional
from nnx_migrate.sizes.expressions.names import read_attribute, read_name
from nnx_migrate.sizes.expressions.operators import open_shape, read_binary, read_test, read_unary
from nnx_migrate.sizes.expressions.subscripts import key_text, read_subscript
from nnx_migrate.sizes.frames import Frame, Function

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def evaluate(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Value:
    """Abstract value of an expression."""
    interpreter.step()
    read = _READERS.get(type(node))
    if read is None:
        value: Value = Unknown(f"{type(node).__name__} is not modelled")
    else:
        value = read(interpreter, node, frame)
    if frame.own:
        interpreter.note(node, value, frame)
    return value


def _constant(interpreter: Interpreter, node: ast.Constant, frame: Frame) -> Value:
    return _literal(node) if not isinstance(node.value, bytes) else Unknown("bytes")


def _conditional(interpreter: Interpreter, node: ast.IfExp, frame: Frame) -> Value:
    return conditional(interpreter, node, frame, lambda one: evaluate(interpreter, one, frame))


def _named(interpreter: Interpreter, node: ast.NamedExpr, frame: Frame) -> Value:
    value = frame.env[node.target.id] = evaluate(interpreter, node.value, frame)
    return value


def _star(interpreter: Interpreter, node: ast.Starred, frame: Frame) -> Value:
    return evaluate(interpreter, node.value, frame)


@lru_cache(maxsize=1 << 14)  # the same code runs again and again
def _literal(node: ast.Constant) -> Static:
    return Static(Expr(node))


def _lambda(interpreter: Interpreter, node: ast.Lambda, frame: Frame) -> Value:
    env = dict(frame.env)
    if frame.instance is not None:
        env["__instance__"] = frame.instance
    return Function(node, frame.scope, env, None, frame.defined_in, frame)


def _sequence(interpreter: Interpreter, node: ast.Tuple | ast.List, frame: Frame) -> Value:
    parts: list[Value] = []
    for one in node.elts:
        value = evaluate(interpreter, one, frame)
        parts.append(value if isinstance(one, ast.Starred) else Sequence((value,)))
    known = [one for one in parts if isinstance(one, Sequence)]
    if len(known) < len(parts):
        shape = open_shape(parts) if isinstance(node, ast.Tuple) else None
        return joined_lists(*parts) if shape is None else shape
    items = tuple(item for one in known for item in one.items)
    return Sequence(items, isinstance(node, ast.List))


def _dict(interpreter: Interpreter, node: ast.Dict, frame: Frame) -> Value:
    entries: dict[str, Value] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        result = evaluate(interpreter, value, frame)
        text = key_text(key)
        if text is not None and text not in entries:
            entries[text] = result
        elif key is None and isinstance(result, Record):
            entries.update(result.entries)
        else:
            return Unknown("a dict with computed keys")
    return Record(entries)


def _fstring(interpreter: Interpreter, node: ast.JoinedStr, frame: Frame) -> Value:
    """The text where every part is known, else the f-string if its parts read the same here."""
    texts: list[str] = []
    unlike = False
    parts: list[ast.expr] = []
    for part in node.values:
        parts.append(part)
        if isinstance(part, ast.Constant):
            texts.append(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        value = evaluate(interpreter, part.value, frame)
        if not isinstance(value, Static):
            return Unknown("a computed string")
        is_plain = part.format_spec is None and part.conversion == -1
        if is_plain and value.expr.is_constant and isinstance(value.expr.constant, int | str):
            texts.append(str(value.expr.constant))
        unlike |= interpreter.loop_names.at(value.expr, part).text != ast.unparse(part.value)
        parts[-1] = ast.FormattedValue(value.expr.node, part.conversion, part.format_spec)
    if len(texts) == len(node.values):
        return constant("".join(texts))
    return Unknown("a string of locals") if unlike else Static(Expr(ast.JoinedStr(parts)))


# By the kind of node: an analysis evaluates too many for a look at one kind after the other.
_READERS: dict[type[ast.expr], Callable[[Interpreter, Any, Frame], Value]] = {
    ast.Constant: _constant,
    ast.Name: read_name,
    ast.Attribute: read_attribute,
    ast.Call: read_call,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Dict: _dict,
    ast.Subscript: read_subscript,
    ast.BinOp: read_binary,
    ast.UnaryOp: read_unary,
    ast.BoolOp: read_test,
    ast.Compare: read_test,
    ast.IfExp: _conditional,
    ast.Lambda: _lambda,
    ast.ListComp: read_comprehension,
    ast.GeneratorExp: read_comprehension,
    ast.SetComp: read_comprehension,
    ast.DictComp: read_dict_comprehension,
    ast.NamedExpr: _named,
    ast.JoinedStr: _fstring,
    ast.Starred: _star,
}
