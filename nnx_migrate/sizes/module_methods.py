"""Methods of Linen modules and layers: ``param``, ``variable``, ``make_rng``, ``attend``, ..."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.values import (
    NONE,
    Instance,
    Library,
    Record,
    Sequence,
    Submodule,
    Unknown,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.constructs.common.shapes import ShapeCall
from nnx_migrate.sizes.construction import call_in_scope, construct_through
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.instance_attributes import as_read, instance_attribute
from nnx_migrate.source.walking import walk

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter
    from nnx_migrate.source.classes import ClassInfo

_MODULE_METHODS = frozenset(
    "make_rng has_variable is_initializing is_mutable_collection has_rng get_variable "  # noqa: SIM905
    "put_variable sow".split()
)


def call_instance_method(
    interpreter: Interpreter,
    instance: Instance,
    name: str,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """A method of a Linen instance of the project."""
    if name in instance.attributes or name in instance.fields:
        target = instance_attribute(interpreter, instance, name, frame)
        return interpreter.call(target, args, kwargs, node, frame)
    found = instance.info.find(name)
    helper = interpreter.scope_functions.get(id(found[1])) if found is not None else None
    if helper is not None:
        return call_in_scope(interpreter, helper, instance, args, kwargs, node, frame)
    if found is not None and interpreter.builds_by(found[1], node):
        method = Function(found[1], found[0].scope, {}, instance, found[0])
        return construct_through(interpreter, method, args, kwargs, node, frame)
    if found is not None and not _is_property(interpreter, *found):
        value = interpreter.call_instance(instance, name, args, kwargs)
        plain = not args and not kwargs
        return as_read(interpreter, instance, name, value, is_called=True) if plain else value
    if name in ("param", "variable"):
        _check_foreign_method(interpreter, instance, node, frame)
    if name == "param":
        return _param(interpreter, args, kwargs, node, frame)
    if name == "variable":
        keywords = {key: one for key, one in kwargs.items() if key != "col"}
        args = args if "col" in kwargs else args[1:]
        return Record({"value": _param(interpreter, args, keywords, node, frame)})
    if name in ("sow", "put_variable"):
        return NONE
    if name == "perturb":
        return args[1] if len(args) > 1 else kwargs.get("value", Unknown("self.perturb"))
    if name in _MODULE_METHODS:
        return Unknown(f"self.{name}")
    if name in ("apply", "init", "clone", "copy", "bind"):
        return Unknown(f"functional use of a submodule: {name}")
    target = instance_attribute(interpreter, instance, name, frame)
    return interpreter.call(target, args, kwargs, node, frame)


def _check_foreign_method(
    interpreter: Interpreter, instance: Instance, node: ast.Call, frame: Frame
) -> None:
    """``Other.method(self, x)`` finds only variables that the class itself makes."""
    other = frame.defined_in
    if instance is not interpreter.root or other is None or other in instance.info.mro:
        return
    own = (one for cls in instance.info.mro for one in walk(cls.node))
    if _variable_name(node) not in {
        _variable_name(one) for one in own if isinstance(one, ast.Call)
    } - {None}:
        what = _variable_name(node) or "a variable of unknown name"
        reason = f"it calls a method of {other.node.name} that makes {what}, which it does not"
        interpreter.problems.append((instance.info.node, reason))


def _variable_name(call: ast.Call) -> str | None:
    """What ``self.param("kernel", ...)`` or ``self.variable("cache", "x", ...)`` makes."""
    match call.func:
        case ast.Attribute(attr="param" | "variable" as method):
            count = 1 if method == "param" else 2
            names = [one.value for one in call.args[:count] if isinstance(one, ast.Constant)]
            return f"self.{method}{(*names,)}" if len(names) == count else None
    return None


def _is_property(interpreter: Interpreter, cls: ClassInfo, method: ast.FunctionDef) -> bool:
    return any(one.endswith("property") for one in interpreter.project.decorators(cls, method))


def _param(
    interpreter: Interpreter,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """Array that ``self.param(name, init, shape, ...)`` creates."""
    named = dict(kwargs)
    named.pop("unbox", None)
    if "name" in named:
        args = (named.pop("name"), *args)
    if "init_fn" in named:
        args = (*args[:1], named.pop("init_fn"), *args[1:])
    kwargs = named
    init, rest = (args[1] if len(args) > 1 else Unknown()), args[2:]
    if isinstance(init, Library) and init.symbol.startswith(("jax.numpy.", "jax.nn.")):
        made = interpreter.call(init, rest, {}, node, frame)
        if as_array(made) is not None:
            return made
    shape = rest[0] if rest else kwargs.get("shape", kwargs.get("init_shape"))
    # The first argument of a function that is written here may mean anything, but for a tuple.
    is_written_here = isinstance(init, Function) and not isinstance(shape, Sequence)
    if shape is not None and not is_written_here:
        array = shapes.array_from(shape)
        if array is not None:
            return array
    found = as_array(interpreter.call(init, (Unknown("key"), *rest), kwargs, node, frame))
    if found is None and not is_written_here:
        found = as_array(interpreter.call(init, rest, kwargs, node, frame))
    return found or Unknown("parameter of unknown shape")


def call_layer_method(
    interpreter: Interpreter,
    layer: Submodule,
    name: str,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
) -> Value:
    """A method of a built-in layer."""
    if name == "__call__":
        return interpreter.call_submodule(layer, args, kwargs)
    symbols = (one.symbol for one in (layer, *layer.options) if isinstance(one, Submodule))
    for known in filter(None, map(layer_of, symbols)):
        if name in known.methods:
            return known.methods[name](ShapeCall(interpreter, layer, args, kwargs))[1]
    if name == "apply" and len(args) >= 2:  # a layer applied to parameters of somebody else
        interpreter.applied_layers.add(id(layer.call))
        owner, layer.owner = layer.owner, None
        try:
            return interpreter.call_submodule(layer, args[1:], {})
        finally:
            layer.owner = owner
    return Unknown(f"method {name} of {layer.symbol}")
