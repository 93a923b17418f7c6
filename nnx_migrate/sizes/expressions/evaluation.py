"""Expressions of the size interpreter: which of the other files knows a node, and the small ones."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import (
    Partial,
    Record,
    Sequence,
    Static,
    Unknown,
    Value,
    constant,
)
from nnx_migrate.sizes.expressions.calls import arguments, read_call
from nnx_migrate.sizes.expressions.comprehensions import read_comprehension
from nnx_migrate.sizes.expressions.conditional import conditional
from nnx_migrate.sizes.expressions.names import read_attribute, read_name
from nnx_migrate.sizes.expressions.operators import read_binary, read_test, read_unary
from nnx_migrate.sizes.expressions.subscripts import key_text, read_subscript
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.partials import partial_lambdas

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def evaluate(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Value:
    """Abstract value of an expression."""
    interpreter.step()
    value = _evaluate(interpreter, node, frame)
    interpreter.note(node, value, frame)
    return value


def _evaluate(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Value:
    match node:
        case ast.Constant(value=value):
            return Static(Expr(node)) if not isinstance(value, bytes) else Unknown("bytes")
        case ast.Name():
            return read_name(interpreter, node, frame)
        case ast.Attribute():
            return read_attribute(interpreter, node, frame)
        case ast.Call():
            return read_call(interpreter, node, frame)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return _sequence(interpreter, items, frame, is_list=isinstance(node, ast.List))
        case ast.Dict(keys=keys, values=values):
            return _dict(interpreter, keys, values, frame)
        case ast.Subscript():
            return read_subscript(interpreter, node, frame)
        case ast.BinOp():
            return read_binary(interpreter, node, frame)
        case ast.UnaryOp():
            return read_unary(interpreter, node, frame)
        case ast.BoolOp() | ast.Compare():
            return read_test(interpreter, node, frame)
        case ast.IfExp():
            return conditional(
                interpreter, node, frame, lambda one: evaluate(interpreter, one, frame)
            )
        case ast.Lambda():
            return _lambda(interpreter, node, frame)
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return read_comprehension(interpreter, node, frame)
        case ast.NamedExpr(target=target, value=inner):
            frame.env[target.id] = evaluate(interpreter, inner, frame)
            return frame.env[target.id]
        case ast.JoinedStr():
            return _fstring(interpreter, node, frame)
        case ast.Starred(value=inner):
            return evaluate(interpreter, inner, frame)
        case _:
            return Unknown(f"{type(node).__name__} is not modelled")


def _lambda(interpreter: Interpreter, node: ast.Lambda, frame: Frame) -> Value:
    call = partial_lambdas(interpreter.project).get(id(node))
    if call is not None:
        plain = [one for one in call.keywords if one.arg is not None]
        args, kwargs = arguments(interpreter, ast.Call(call.func, call.args, plain), frame)
        return Partial(interpreter.evaluate(call.func, frame), args, kwargs)
    env = dict(frame.env)
    if frame.instance is not None:
        env["__instance__"] = frame.instance
    return Function(node, frame.scope, env, None, frame.defined_in, frame)


def _sequence(
    interpreter: Interpreter, nodes: list[ast.expr], frame: Frame, *, is_list: bool
) -> Value:
    items: list[Value] = []
    for one in nodes:
        value = evaluate(interpreter, one, frame)
        if isinstance(one, ast.Starred):
            if not isinstance(value, Sequence):
                return Unknown("a starred item of unknown length")
            items.extend(value.items)
        else:
            items.append(value)
    return Sequence(tuple(items), is_list)


def _dict(
    interpreter: Interpreter, keys: list[ast.expr | None], values: list[ast.expr], frame: Frame
) -> Value:
    entries: dict[str, Value] = {}
    for key, value in zip(keys, values, strict=True):
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
