"""Calls: what is called, and with which arguments."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import (
    SPREAD,
    STARRED,
    Argument,
    Array,
    Choice,
    Class,
    Factories,
    Instance,
    Library,
    Partial,
    Record,
    Sequence,
    Submodule,
    Unknown,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.attributes import call_method
from nnx_migrate.sizes.expressions.conditional import conditional
from nnx_migrate.sizes.expressions.names import symbol_of_name, symbol_value
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.handed_classes import check_class_arguments
from nnx_migrate.sizes.unknown_builders import check_over_rounds

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


_NUMERIC = ("jax.numpy.", "jax.lax.", "jax.nn.", "jax.random.", "jax.scipy.", "numpy.")


def read_call(interpreter: Interpreter, node: ast.Call, frame: Frame) -> Value:
    """Value of a call."""
    if isinstance(node.func, ast.IfExp):
        args, kwargs = arguments(interpreter, node, frame)
        chosen = interpreter.evaluate(node.func, frame)
        if _builds(chosen):  # one submodule, of either class
            return interpreter.call(chosen, args, kwargs, node, frame)
        return conditional(  # only one of the two is called
            interpreter,
            node.func,
            frame,
            lambda one: interpreter.call(
                interpreter.evaluate(one, frame), args, kwargs, node, frame
            ),
        )
    method = _method_call(interpreter, node, frame)
    if isinstance(method, tuple):
        base, name = method
    args, kwargs = arguments(interpreter, node, frame)
    called = method[0] if isinstance(method, tuple) else method
    if _takes_any(called) and _spreads_unknown(interpreter, node, frame):
        kwargs[SPREAD] = Unknown("spread")
    check_class_arguments(interpreter, called, (*args, *kwargs.values()), node, frame)
    if isinstance(method, tuple):
        return call_method(interpreter, base, name, args, kwargs, node, frame)
    check_over_rounds(interpreter, method, node)
    return interpreter.call(method, args, kwargs, node, frame)


def _takes_any(value: Value) -> bool:
    """Whether it matters what a call hands in by names that nobody knows."""
    if isinstance(value, Library):
        return value.symbol == "dict" or value.symbol.startswith(_NUMERIC)
    return isinstance(value, Instance | Submodule | Function | Array | Argument)


def _builds(value: Value) -> bool:
    """Whether a call of a value builds a submodule."""
    match value:
        case Choice(options=options):
            return any(map(_builds, options))
        case Library(symbol=symbol):
            return layer_of(symbol) is not None
    return isinstance(value, Class | Factories | Partial)


def _method_call(
    interpreter: Interpreter, node: ast.Call, frame: Frame
) -> Value | tuple[Value, str]:
    """What a call calls: a value, or a method of a value by name."""
    function = node.func
    if not isinstance(function, ast.Attribute):
        return interpreter.evaluate(function, frame)
    symbol = symbol_of_name(interpreter, function, frame)
    if symbol is not None:
        return symbol_value(interpreter, symbol)
    return interpreter.evaluate(function.value, frame), function.attr


def arguments(
    interpreter: Interpreter, node: ast.Call, frame: Frame
) -> tuple[tuple[Value, ...], dict[str, Value]]:
    """Arguments of a call; starred ones are spread when known."""
    args: list[Value] = []
    for one in node.args:
        value = interpreter.evaluate(one, frame)
        if isinstance(one, ast.Starred):
            args.extend(value.items if isinstance(value, Sequence) else [STARRED])
        else:
            args.append(value)
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        value = interpreter.evaluate(keyword.value, frame)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, Record):
            kwargs.update({name: one for name, one in value.entries.items() if name != SPREAD})
    return tuple(args), kwargs


def _spreads_unknown(interpreter: Interpreter, node: ast.Call, frame: Frame) -> bool:
    """Whether ``**x`` may hand in arguments that nobody knows."""
    spread = [interpreter.evaluate(one.value, frame) for one in node.keywords if one.arg is None]
    return any(not isinstance(one, Record) or SPREAD in one.entries for one in spread)
