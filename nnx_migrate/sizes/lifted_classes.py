"""What the name of a Linen class holds: the class, lifted by its decorators and by new bindings."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import Class, Library, Unknown, Value
from nnx_migrate.sizes.decorators import application
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.source.classes import ClassInfo

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def named_class(interpreter: Interpreter, info: ClassInfo) -> Value:
    """The value of a class's name; Unknown where a new binding makes something else of it."""
    if not info.node.decorator_list and not info.rebound:
        return Class(info)
    known = interpreter.named_classes
    if id(info) not in known:
        known[id(info)] = Class(info)  # for what mentions the class while it is made
        known[id(info)] = _lifted(interpreter, info)
    return known[id(info)]


def lifts_axes(interpreter: Interpreter, info: ClassInfo) -> bool:
    """Whether calls of a class by its name go through other axes than its own methods say."""
    value = named_class(interpreter, info)
    return not isinstance(value, Class) or bool(value.lifts)


def _lifted(interpreter: Interpreter, info: ClassInfo) -> Value:
    value: Value = Class(info)
    frame = Frame(info.scope, {})
    for decorator in reversed(info.node.decorator_list):
        if _is_lift(interpreter, decorator, frame):
            wrapper = interpreter.evaluate(decorator, frame)
            value = interpreter.call(wrapper, (value,), {}, application(decorator), frame)
    for one in info.rebound:
        value = interpreter.evaluate(one, Frame(info.scope, {info.node.name: value}))
    is_same = isinstance(value, Class) and value.info is info
    return value if is_same else Unknown(f"what {info.node.name} is bound to anew is not known")


def _is_lift(interpreter: Interpreter, decorator: ast.expr, frame: Frame) -> bool:
    """Whether it is ``nn.remat`` or so, plainly or with options, and no decorator of a dataclass."""
    named = decorator
    if isinstance(decorator, ast.Call):
        symbol = interpreter.project.resolve(decorator.func, frame.scope)
        is_partial = symbol == "functools.partial" and decorator.args
        named = decorator.args[0] if is_partial else decorator.func
    value = interpreter.evaluate(named, frame)
    return isinstance(value, Library) and value.symbol.startswith("flax.linen.")
