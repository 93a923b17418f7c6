"""What a name is on an instance of a Linen class: set in setup, a field, a property, a class constant."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Instance, Library, Static, Unknown, Value
from nnx_migrate.sizes.frames import Frame, Function

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


VARIABLES = Library("<variables>")  # of a module, and every entry of them: never None


def instance_attribute(
    interpreter: Interpreter, instance: Instance, name: str, frame: Frame
) -> Value:
    """Attribute of a Linen instance: set in setup, a field, a property, a class constant."""
    if name in instance.attributes:
        return instance.attributes[name]
    if name in instance.fields:
        return instance.fields[name]
    if instance is not frame.instance or not frame.own:
        interpreter.set_up(instance)
    if name in instance.attributes:
        return instance.attributes[name]
    if name == "variables":
        return VARIABLES
    found = instance.info.find(name)
    if found is not None:
        cls, node = found
        function = Function(node, cls.scope, {}, instance, cls)
        decorators = interpreter.project.decorators(cls, node)
        if any(one.endswith("property") for one in decorators):
            value = interpreter.call_function(function, (), {})
            return as_read(interpreter, instance, name, value)
        return function
    for cls in instance.info.mro:
        for statement in cls.node.body:
            if isinstance(statement, ast.Assign) and _names(statement) == [name]:
                value = interpreter.evaluate(statement.value, Frame(cls.scope, {}))
                return as_read(interpreter, instance, name, value)
    return Unknown(f"{instance.info.name} has no attribute {name}")


def as_read(
    interpreter: Interpreter, instance: Instance, name: str, value: Value, *, called: bool = False
) -> Value:
    """What ``self.name`` is where other classes, which share ``__init__``, have it otherwise."""
    if instance is not interpreter.root or name not in interpreter.varying:
        return value
    if not isinstance(value, Static):
        return value
    read: ast.expr = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
    return Static(Expr(ast.Call(read, [], []) if called else read))


def _names(statement: ast.Assign) -> list[str]:
    return [one.id for one in statement.targets if isinstance(one, ast.Name)]
