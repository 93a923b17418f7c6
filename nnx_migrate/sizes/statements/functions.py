"""Functions of the project, run on abstract arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.joining import join
from nnx_migrate.abstract.questions import by_position
from nnx_migrate.abstract.values import (
    NONE,
    SPREAD,
    STARRED,
    Class,
    Instance,
    Lift,
    Record,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.lifts import call_through_lifts
from nnx_migrate.sizes.method_lifts import lifts_of, takes_last
from nnx_migrate.source.names import defaults_of, positional_names
from nnx_migrate.source.walking import each, is_name, walk

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

# Runs of one function inside each other. A size may be twice as long a text in each of them.
_NESTED = 6


def set_up(interpreter: Interpreter, instance: Instance) -> None:
    """Run an instance's ``setup`` once."""
    if instance.is_set_up:
        return
    instance.is_set_up = True
    found = instance.info.find("setup")
    if found is not None:
        cls, node = found
        call_function(interpreter, Function(node, cls.scope, {}, instance, cls), (), {})


def call_function(
    interpreter: Interpreter, function: Function, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> Value:
    """Call a function of the project on abstract arguments, through lifts that decorate a method."""
    node, cls = function.node, function.defined_in
    lifts: tuple[Lift, ...] = ()
    if cls is not None and isinstance(node, ast.FunctionDef) and cls.methods.get(node.name) is node:
        lifts = lifts_of(interpreter, cls, node)
    if not lifts or not isinstance(node, ast.FunctionDef):
        return run_function(interpreter, function, args, kwargs)
    own = args[:1] if function.owner is None else ()
    args = tuple(map(interpreter.as_array, args[len(own) :]))
    if takes_last(lifts, args):
        reason = f"a decorator of {node.name} takes away the last axis of what it is given"
        interpreter.refuse(interpreter.root.info.node, reason)
    return call_through_lifts(
        lifts, args, lambda given: run_function(interpreter, function, (*own, *given), kwargs)
    )


def run_function(
    interpreter: Interpreter, function: Function, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> Value:
    """Run the body of a function on abstract arguments."""
    node = function.node
    if isinstance(node, ast.AsyncFunctionDef) or _is_generator(node):
        return Unknown("coroutine or generator")
    if sum(one.node is node for one in interpreter.frames) >= _NESTED:
        return Unknown("a function that calls itself many times")
    scope = function.scope.enter(node)
    owner = function.owner if isinstance(function.owner, Instance) else None
    args = (*_receiver(function), *args)
    own = owner is interpreter.root or (owner is None and bool(function.env.get("__own__")))
    around = function.home.env if function.home is not None else {}
    env = {**function.env, **around}  # names around it as they are now, not as they were
    frame = Frame(scope, env, owner or _owner(function), function.defined_in, own, node=node)
    frame.env["__own__"] = Static(ex.literal(own))
    if not own:
        frame.env.pop("__own__")
    frame.depth = len(interpreter.conditions)
    defaults = _bind(interpreter, function, frame, args, kwargs)
    with _enter(interpreter, function, frame):
        result = _run_body(interpreter, node, frame)
    if any(one is old for one in defaults for old in frame.mutations):
        return Unknown("a default that calls change")  # ``def width(seen=[2]): seen.append(...)``
    return result


def _run_body(interpreter: Interpreter, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> Value:
    if isinstance(node, ast.Lambda):
        return interpreter.evaluate(node.body, frame)
    flow = interpreter.run(node.body, frame)
    if flow is None:
        frame.returns.append((None, NONE))
    return _result(frame)


@contextmanager
def _enter(interpreter: Interpreter, function: Function, frame: Frame) -> Iterator[None]:
    """Run a function; what it changes is changed for its callers and for what stands around it."""
    interpreter.frames.append(frame)
    try:
        yield
    finally:
        interpreter.frames.pop()
        for old in frame.mutations:
            for one in (*interpreter.frames[-1:], *([function.home] if function.home else [])):
                one.forget(old)
        if function.home is not None:
            for name in _rebound(function.node):
                function.home.env[name] = frame.env.get(name, Unknown("bound by a function"))


@lru_cache(maxsize=1 << 13)
def _rebound(node: ast.AST) -> frozenset[str]:
    """Names of the function around it that a nested function binds."""
    found = (one for one in each(node, ast.Nonlocal))
    return frozenset(name for one in found for name in one.names)


def _owner(function: Function) -> Instance | None:
    value = function.env.get("__instance__")
    return value if isinstance(value, Instance) else None


@lru_cache(maxsize=1 << 13)
def _is_generator(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom) for one in walk(node))


def _receiver(function: Function) -> tuple[Value, ...]:
    """What a bound method gets first: the module, its class in a class method, or nothing."""
    owner = function.owner
    if not isinstance(owner, Instance | Class) or _is_decorated(function.node, "staticmethod"):
        return ()
    if isinstance(owner, Instance) and _is_decorated(function.node, "classmethod"):
        return (Class(owner.info),)
    return (owner,)


def _is_decorated(node: ast.AST, name: str) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(is_name(one, name) for one in decorators)


def _result(frame: Frame) -> Value:
    if not frame.returns:
        return Unknown("the function never returns")
    result = frame.returns[-1][1]
    for test, value in reversed(frame.returns[:-1]):
        result = join(test, value, result)
    return result


def _bind(
    interpreter: Interpreter,
    function: Function,
    frame: Frame,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
) -> list[Value]:
    """Bind parameters to what they are given; the defaults of those that are given nothing."""
    spec = function.node.args
    positional = positional_names(spec)
    arguments = by_position(positional, args)
    rest = dict(kwargs)
    for name in [*positional, *(one.arg for one in spec.kwonlyargs)]:
        if name in rest:
            arguments[name] = rest.pop(name)
    outside = Frame(function.scope, dict(function.env), frame.instance, function.defined_in)
    defaults = []
    for name, default in defaults_of(spec).items():
        if name not in arguments:
            perhaps = rest.get(SPREAD)  # it is the default, or given by a name that nobody knows
            arguments[name] = perhaps or interpreter.evaluate(default, outside)
            defaults.append(arguments[name])
    names = [*positional, *(one.arg for one in spec.kwonlyargs)]
    frame.env.update({name: arguments.get(name, Unknown("argument not given")) for name in names})
    if spec.vararg:
        left = (STARRED,) if STARRED in args[: len(positional)] else tuple(args[len(positional) :])
        frame.env[spec.vararg.arg] = STARRED if STARRED in left else Sequence(left)
    if spec.kwarg:
        frame.env[spec.kwarg.arg] = Record(rest)
    return defaults
