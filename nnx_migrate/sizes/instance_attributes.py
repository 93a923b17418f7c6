"""What a name is on an instance of a Linen class: set in setup, a field, a property, a class constant."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Instance, Library, Static, Unknown, Value
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.source.constants import class_constants, written_out
from nnx_migrate.source.walking import each

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter
    from nnx_migrate.source.classes import ClassInfo


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
    for cls in instance.info.mro:
        if name in cls.bound:
            return _of_class(interpreter, instance, name, cls)
    return Unknown(f"{instance.info.name} has no attribute {name}")


def _of_class(interpreter: Interpreter, instance: Instance, name: str, cls: ClassInfo) -> Value:
    """What the body of ``cls`` gives a name: a method, a property, a constant."""
    match cls.bound[name][-1]:
        case ast.FunctionDef() as node:
            function = Function(node, cls.scope, {}, instance, cls)
            decorators = interpreter.project.decorators(cls, node)
            if not any(one.endswith("property") for one in decorators):
                return function
            value = interpreter.call_function(function, (), {})
            return as_read(interpreter, instance, name, value)
        case (
            ast.Assign(targets=[ast.Name()], value=value)
            | ast.AnnAssign(target=ast.Name(), value=ast.expr() as value)
        ):
            constant = written_out(value, class_constants(cls.node))
            if all(one.id not in cls.bound for one in each(constant, ast.Name)):
                found = interpreter.evaluate(constant, Frame(cls.scope, {}))
                return as_read(interpreter, instance, name, found)
    return Unknown(f"{name} of the body of {cls.name}")


def as_read(
    interpreter: Interpreter,
    instance: Instance,
    name: str,
    value: Value,
    *,
    is_called: bool = False,
) -> Value:
    """What ``self.name`` is where other classes, which share ``__init__``, have it otherwise."""
    if instance is not interpreter.root or name not in interpreter.varying:
        return value
    if not isinstance(value, Static):
        return value
    read: ast.expr = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
    return Static(Expr(ast.Call(read, [], []) if is_called else read))
