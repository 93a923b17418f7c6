"""Attributes and methods of abstract values."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import as_array, join
from nnx_migrate.abstract.questions import spelled_out
from nnx_migrate.abstract.values import (
    NONE,
    STARRED,
    Argument,
    Array,
    Choice,
    Class,
    ConcatenatedList,
    DataClass,
    ExtendedList,
    Instance,
    Library,
    Partial,
    Record,
    RepeatedDict,
    RepeatedItem,
    Sequence,
    Static,
    Submodule,
    Unknown,
    Value,
)
from nnx_migrate.sizes.choices import each
from nnx_migrate.sizes.fields.modules import is_module
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.instance_attributes import VARIABLES, instance_attribute
from nnx_migrate.sizes.lists import (
    READING,
    extend_each,
    hold,
    list_method,
    lose_arguments,
    lose_bound,
    lose_text,
)
from nnx_migrate.sizes.module_methods import call_instance_method, call_layer_method
from nnx_migrate.sizes.outside_uses import check_outside
from nnx_migrate.sizes.records import record_method
from nnx_migrate.sizes.statics import axis_value, static_of
from nnx_migrate.sizes.unknown_builders import check_maker, is_global, is_plain, note_unknown

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter
    from nnx_migrate.source.classes import ClassInfo


@dataclass(frozen=True)
class ShapeOf(Value):
    """``x.shape`` of an array whose rank may be unknown."""

    shape_of: Array


@dataclass(frozen=True)
class OpenShape(Value):
    """A shape whose leading axes are unknown in number: those of ``source`` up to axis ``cut``.

    ``tail`` are the sizes known at its end, ``middle`` those that follow the source's axes.
    """

    tail: tuple[Expr | None, ...]
    source: Array
    cut: int
    middle: tuple[Expr | None, ...] = ()

    @property
    def array(self) -> Array:
        """An array of this shape: what is sure are the axes that were added."""
        return Array(self.tail, least=len(self.middle))


def leading(array: Array, cut: int) -> OpenShape:
    """``x.shape[:cut]`` of an array of unknown rank, counted from the end."""
    known = array.last_sizes(max(len(array.tail), 1))
    return OpenShape(known[:cut] if -cut < len(known) else (), array, cut)


_OF_ARRAYS = frozenset(
    {
        *("shape", "ndim", "size", "dtype", "T", "mT", "at", "flat"),
        *("itemsize", "nbytes", "sharding", "weak_type"),
    }
)
_OF_BOTH = frozenset({"real", "imag"})  # of arrays, and of inputs that hold two
_KEEPS_TYPE = _OF_BOTH | {"at", "value"}


def attribute_of(interpreter: Interpreter, base: Value, name: str, frame: Frame) -> Value:
    """``base.name``."""
    check_outside(interpreter, base, name, frame)
    lose_bound(base, name, frame)
    match base:
        case Instance():
            value = instance_attribute(interpreter, base, name, frame)
            if base is interpreter.root:
                interpreter.note_read(value)
            return value
        case Choice() if name in _OF_ARRAYS and (array := as_array(base)) is not None:
            return _array_attribute(interpreter.ranks.with_rank(array), name)
        case Choice(options=options):
            values = [attribute_of(interpreter, one, name, frame) for one in options]
            result = values[0]
            for other in values[1:]:
                result = join(None, result, other)
            return result
        case Argument(path=path):
            if name in _OF_ARRAYS:
                return _array_attribute(interpreter.ranks.with_rank(base.array()), name)
            if name in _OF_BOTH:
                base_array = interpreter.as_array(base)
                return base_array if base_array is not base else Unknown(f"{path}.{name}")
            return Argument(f"{path}.{name}")
        case Array():
            return _array_attribute(interpreter.ranks.with_rank(base), name)
        case Record(entries=entries):
            return entries.get(name, Unknown(f"no entry {name}"))
        case Submodule() if name == "variables":
            return VARIABLES
        case Submodule(arguments=arguments):
            return arguments.get(name, Unknown(f"attribute {name} of a layer"))
        case Static(expr=expr):
            return Static(Expr(ast.Attribute(expr.node, name, ast.Load())))
        case Class(info=info) if (found := info.find(name)) is not None:
            decorators = interpreter.project.decorators(*found)
            owner = base if "classmethod" in decorators else None
            return Function(found[1], found[0].scope, {}, owner, found[0])
        case DataClass(info=info) if (static := _static(interpreter, info, name)) is not None:
            return static
        case Library(symbol="<super>"):
            return _super_attribute(interpreter, name, frame)
        case Library(symbol=symbol):
            return Library(f"{symbol}.{name}")
        case _:
            return Unknown(f"attribute {name} of an unknown value")


def _static(interpreter: Interpreter, info: ClassInfo, name: str) -> Function | None:
    """The static method of a class of the project that is no Linen module."""
    found = info.find(name)
    if found is None or "staticmethod" not in interpreter.project.decorators(*found):
        return None
    return Function(found[1], found[0].scope, {}, None, found[0])


def _array_attribute(array: Array, name: str) -> Value:
    if name == "shape":
        if array.rank is not None:
            sizes = array.last_sizes(array.rank)
            items = tuple(map(axis_value, sizes))
            return _Shape(items, False, array)
        return ShapeOf(array)
    if name == "ndim":
        known = array.rank is not None
        return Static(ex.literal(array.rank)) if known else Unknown("rank unknown")
    if name == "T":
        return (
            Array(tuple(reversed(array.last_sizes(array.rank))), array.rank)
            if array.rank
            else Array()
        )
    if name == "mT":
        swapped = (array.axis(-1), array.axis(-2))
        return Array(
            (*array.last_sizes(array.rank)[:-2], *swapped) if array.rank else swapped, array.rank
        )
    if name == "dtype":
        return Library("jax.numpy.dtype")
    return array if name in _KEEPS_TYPE else Unknown(f"array attribute {name}")


@dataclass(frozen=True)
class _Shape(Sequence, ShapeOf):
    """A shape of known rank: a tuple, and still the shape of its array."""

    def __init__(self, items: tuple[Value, ...], is_list: bool, shape_of: Array) -> None:
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "is_list", is_list)
        object.__setattr__(self, "shape_of", shape_of)


def call_method(
    interpreter: Interpreter,
    base: Value,
    name: str,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """``base.name(*args, **kwargs)``."""
    check_outside(interpreter, base, name, frame)
    match base:
        case Instance():
            return call_instance_method(interpreter, base, name, args, kwargs, node, frame)
        case Submodule():
            return call_layer_method(interpreter, base, name, args, kwargs)
        case Array() | Argument():
            return _array_method(interpreter, base, name, args, kwargs, node, frame)
        case Choice():
            array = as_array(base)
            if array is not None:
                return _array_method(interpreter, array, name, args, kwargs, node, frame)
            if extend_each(base, name, args, node, frame):
                return NONE
            values = each(
                interpreter,
                base,
                base.options,
                lambda one: call_method(interpreter, one, name, args, kwargs, node, frame),
            )
            if name not in READING and any(isinstance(one, Sequence) for one in base.options):
                hold(Unknown("one of several lists, changed"), node, frame)
            result = values[0]
            for other in values[1:]:
                result = join(None, result, other)
            return result
        case Record():
            return record_method(interpreter, base, name, args, kwargs, node, frame)
        case RepeatedDict(each=values) if name in ("items", "values"):
            item = values.item if name == "values" else Sequence((Unknown("a key"), values.item))
            return replace(values, item=item)
        case Sequence() | RepeatedItem() | ExtendedList() | ConcatenatedList():
            return list_method(base, name, args, node, frame)
        case Static(expr=expr):
            lose_arguments((*args, *kwargs.values()), frame)
            lose_text(name, node, frame)
            check_maker(interpreter, base, name, node, frame)
            if is_global(interpreter, node, frame):
                note_unknown(interpreter, base, node, args)
            if is_module(interpreter.project, interpreter.root.info, f"{expr.text}.{name}"):
                return Unknown("what a method of a module of any class returns")
            return _static_method(expr, name, args, kwargs)
        case Library(symbol="<super>"):
            return _super_method(interpreter, name, args, kwargs, frame)
        case Class() | DataClass() | Partial() | Library():
            target = attribute_of(interpreter, base, name, frame)
            return interpreter.call(target, args, kwargs, node, frame)
        case _:
            lose_arguments((*args, *kwargs.values()), frame)
            check_maker(interpreter, base, name, node, frame)
            note_unknown(interpreter, base, node, args)
            maker = "" if is_plain(name) else ast.unparse(node.func)
            return Unknown(f"method {name} of an unknown value", made_by=maker)


def _super_method(
    interpreter: Interpreter,
    name: str,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    frame: Frame,
) -> Value:
    function = _base_method(name, frame)
    if function is None:
        return Unknown(f"no inherited method {name}, or none outside a method")
    found = interpreter.call_function(function, args, kwargs)
    return spelled_out(found, interpreter.endings)  # behind the method, without its locals


def _base_method(name: str, frame: Frame) -> Function | None:
    """The method ``name`` of the bases behind the class whose method runs."""
    instance, here = frame.instance, frame.defined_in
    order = instance.info.mro if instance is not None else ()
    for cls in order[order.index(here) + 1 :] if here in order else ():
        if name in cls.methods:
            return Function(cls.methods[name], cls.scope, {}, instance, cls)
    return None


def _super_attribute(interpreter: Interpreter, name: str, frame: Frame) -> Value:
    function = _base_method(name, frame)
    if function is None or not isinstance(function.node, ast.FunctionDef):
        return Unknown(f"no inherited property {name}")
    words = [ast.unparse(one) for one in function.node.decorator_list]
    is_property = any(one.endswith("property") for one in words)
    return interpreter.call_function(function, (), {}) if is_property else function


def _array_method(
    interpreter: Interpreter,
    base: Value,
    name: str,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    if isinstance(base, Argument) and name in ("_replace", "get", "items", "pop", "replace"):
        return Record({**kwargs}) if name == "_replace" else Unknown("a call argument's method")
    if name == "astype":
        return as_array(base) or Unknown()
    if name in ("set", "add", "multiply", "get"):  # x.at[...].set(...)
        return _update(interpreter, node, frame)
    if name in ("reshape", "transpose") and STARRED in args:  # as x.reshape((*lead, n))
        arguments = ast.Tuple(node.args, ast.Load())
        args = (interpreter.evaluate(ast.copy_location(arguments, node), frame),)
    elif (name == "reshape" and len(args) != 1) or (name == "transpose" and len(args) > 1):
        args = (Sequence(args),)
    symbol = f"jax.numpy.{name}"
    return interpreter.call_library(symbol, (base, *args), kwargs, node, frame)


def _update(interpreter: Interpreter, node: ast.Call, frame: Frame) -> Value:
    """``x.at[i].set(y)`` has the shape of ``x``, ``x.at[i].get()`` that of ``x[i]``."""
    match node.func:
        case ast.Attribute(
            value=ast.Subscript(value=ast.Attribute(value=array, attr="at"), slice=index),
            attr=method,
        ):
            if method == "get":
                read = ast.Subscript(array, index, ast.Load())
                return interpreter.evaluate(ast.copy_location(read, node), frame)
            return as_array(interpreter.evaluate(array, frame)) or Unknown("an indexed update")
    return Unknown("an indexed update")


def _static_method(
    expr: Expr, name: str, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> Value:
    parts = [static_of(one) for one in args]
    named = {key: static_of(one) for key, one in kwargs.items()}
    if any(p is None for p in parts) or any(p is None for p in named.values()):
        array = as_array(args[0]) if len(args) == 1 else None
        return array or Unknown("a method of a field on unknown arguments")
    call = ast.Call(
        ast.Attribute(expr.node, name, ast.Load()),
        [p.node for p in parts if p],
        [ast.keyword(key, p.node) for key, p in named.items() if p],
    )
    return Static(Expr(call))
