"""Constructor calls: built-in layers, Linen classes, class-valued fields, plain records."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from nnx_migrate.abstract.questions import class_name, is_none
from nnx_migrate.abstract.values import (
    Choice,
    Class,
    DataClass,
    Factories,
    Instance,
    Record,
    Submodule,
    Unknown,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.fields.literals import gives_entry
from nnx_migrate.sizes.fields.values import possible_values
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.parentless import parentless_calls
from nnx_migrate.source.classes import ClassInfo

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter
    from nnx_migrate.sizes.scope_functions import ScopeFunction

M = TypeVar("M", Submodule, Instance)


def construct_layer(
    interpreter: Interpreter,
    symbol: str,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Submodule:
    """Construct a built-in layer."""
    _check_name(interpreter, kwargs, node, frame)
    layer = layer_of(symbol)
    assert layer is not None
    bound = {**dict(zip(layer.fields, args, strict=False)), **kwargs}
    owner = None if is_none(kwargs.get("parent", Unknown())) else _owner(interpreter, frame)
    made = Submodule(symbol, bound, node, owner, is_conditional=bool(interpreter.conditions))
    return _register(interpreter, made)


def _check_name(
    interpreter: Interpreter, kwargs: dict[str, Value], node: ast.Call, frame: Frame
) -> None:
    """Refuse ``nn.Dense(**kw)`` where ``kw`` has a name: attributes are called as names are written.

    What a factory function hands on is written where it is called.
    """
    if frame.instance is not interpreter.root or any(one.arg == "name" for one in node.keywords):
        return
    unpacked = (one.value for one in node.keywords if one.arg is None)
    around, project = interpreter.root.info.node, interpreter.project
    if "name" in kwargs or any(
        gives_entry(value, "name")
        for one in unpacked
        for value, _ in possible_values(project, one, frame.scope, around)
    ):
        interpreter.problems.append((node, "a submodule is given its name in a dict"))


def _owner(interpreter: Interpreter, frame: Frame) -> Instance | None:
    """Who builds what a frame constructs."""
    return frame.instance or interpreter.root


def _register(interpreter: Interpreter, module: M) -> M:
    if module.owner is interpreter.root and module.call is not None:
        first = interpreter.submodules.setdefault(id(module.call), module)
        rounds = {one.has_rounds for one in interpreter.loops if one.has_rounds is not None}
        interpreter.made_in[id(module.call)] = frozenset(rounds)
        kinds = {class_name(first): None, class_name(module): None}
        if len(kinds) > 1:  # rounds of a loop: names, and arguments, are those of one class
            text = " and ".join(kinds)
            interpreter.problems.append((module.call, f"one call builds {text}, in turns"))
    return module


def construct(
    interpreter: Interpreter,
    target: Class,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Instance | Unknown:
    """Construct a Linen class of the project.

    Nothing is known of one that a function builds for the sake of its pure functions.
    """
    if frame.instance is None and id(node) in parentless_calls(interpreter.project):
        return Unknown("a module that has no parent")
    _check_name(interpreter, kwargs, node, frame)
    fields = _bind_fields(interpreter, target.info, args, kwargs)
    owner = _owner(interpreter, frame)
    instance = Instance(target.info, fields, node, owner, lift=target.lift, lifts=target.lifts)
    instance.is_conditional = bool(interpreter.conditions)
    return _register(interpreter, instance)


def _bind_fields(
    interpreter: Interpreter, info: ClassInfo, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> dict[str, Value]:
    """Dataclass binding, defaults evaluated where the class stands."""
    positional = [one.name for one in info.fields if not one.keyword_only]
    bound = {**dict(zip(positional, args, strict=False)), **kwargs}
    for one in info.fields:
        if one.name not in bound and one.default is not None:
            scope = one.owner.scope
            bound[one.name] = interpreter.evaluate(one.default, Frame(scope, {}))
    for name in info.post_init_attributes & bound.keys():
        bound[name] = Unknown("__post_init__ may change the field")
    return bound


def construct_any(
    interpreter: Interpreter,
    target: Factories,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """Construct through a class-valued field: every candidate, seen as one submodule."""
    single = _one_class(target)
    if not target.options:
        interpreter.unsure.add(id(node))
        layer = Submodule("", {}, node, _owner(interpreter, frame), factory=True)
        return _register(interpreter, layer)
    if single is not None:
        return construct(interpreter, single, args, kwargs, node, frame)
    _check_name(interpreter, kwargs, node, frame)
    silent = Frame(frame.scope, {}, Instance(interpreter.root.info, {}, None, None))
    options = tuple(interpreter.call(one, args, kwargs, node, silent) for one in target.options)
    modules = tuple(one for one in options if isinstance(one, Submodule | Instance))
    if len(modules) != len(options) or not modules:
        return Unknown("a candidate of the class-valued field is no module")
    layer = Submodule("", {}, node, _owner(interpreter, frame), factory=True, options=modules)
    return _register(interpreter, layer)


def construct_through(
    interpreter: Interpreter,
    function: Function,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """Construct through a factory: all that it may return, seen as one submodule."""
    module = function.owner if isinstance(function.owner, Instance) else None
    silent = Instance(interpreter.root.info, module.fields if module else {}, None, None)
    owner_inside = silent if module else function.owner
    inside = replace(function, env={**function.env, "__instance__": silent}, owner=owner_inside)
    result = interpreter.call_function(inside, args, kwargs)
    options = result.options if isinstance(result, Choice) else (result,)
    modules = tuple(one for one in options if isinstance(one, Submodule | Instance))
    names = {class_name(one) for one in modules}
    if not modules or len(modules) != len(options):
        return Unknown("the function builds what is not known", made_by=ast.unparse(node.func))
    name, owner = names.pop() if len(names) == 1 else "", _owner(interpreter, frame)
    interpreter.through_functions.add(id(node))
    layer = Submodule("", {}, node, owner, factory=True, options=modules, class_name=name)
    return _register(interpreter, layer)


def call_in_scope(
    interpreter: Interpreter,
    function: ScopeFunction,
    module: Instance | None,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """Call a function that builds submodules for its caller, as a submodule of a class of its own.

    A helper method shares the attributes of the ``module`` whose method it is.
    """
    instance = Instance(function.cls, {}, node, _owner(interpreter, frame))
    if function.method_of is not None and module is not None:
        instance.fields, instance.attributes = module.fields, module.attributes
        instance.variables, instance.is_set_up = module.variables, True
    _register(interpreter, instance)
    return interpreter.call_instance(instance, "__call__", args, kwargs)


def _one_class(target: Factories) -> Class | None:
    """The class when the candidates differ in their lifted names alone (``nn.remat`` or not)."""
    first = target.options[0] if target.options else None
    if target.text or not isinstance(first, Class):
        return None
    same = all(
        isinstance(one, Class) and (one.info, one.lifts) == (first.info, first.lifts)
        for one in target.options
    )
    return replace(first, lift=None) if same else None


# With one of these an object has other attributes than its fields, or entries that are none.
_OWN_WAYS = frozenset({"__init__", "__new__", "__post_init__", "__getattr__", "__getitem__"}) | (
    frozenset(dir(dict)) - frozenset(dir(object))
)


def construct_record(target: DataClass, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    """Construct a plain dataclass, named tuple or model output: a class that says what it has."""
    if any(_OWN_WAYS & cls.methods.keys() for cls in target.info.mro):
        return Unknown(f"an object of {target.info.name}")
    names = [
        statement.target.id
        for cls in reversed(target.info.mro)
        for statement in cls.node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]
    bound = {**dict(zip(names, args, strict=False)), **kwargs}
    order = [name for name in names if name in bound] + [n for n in bound if n not in names]
    return Record({name: bound[name] for name in order})
