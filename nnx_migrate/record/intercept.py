"""Wrap, in this process's memory, how Linen modules are built and called.

Follows flax 0.12.8 and 0.12.12: every class statement runs ``Module.__init_subclass__``, every module
``Module.__post_init__`` once it has its fields, and every call of one of its methods goes through
``Module._call_wrapped_method`` (``flax/linen/module.py``). Each thread has one listener at most.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType
from typing import Any, Protocol

from flax import linen


class Listener(Protocol):
    """Told of what happens in a thread; must not raise."""

    def on_class(self, cls: type[linen.Module], frame: FrameType) -> None:
        """A class statement was run, in this frame or one that called it."""

    def on_instance(self, module: linen.Module) -> None:
        """A module has its fields, and its scope where it is built inside another."""

    def on_call(self, module: linen.Module, function: Callable[..., Any], call: Call) -> None:
        """A method is about to run."""


class Call:
    """One call's arguments, bound to names when someone asks."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        inside: linen.Module | None,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.inside = inside  # the module whose method calls

    def arguments(self) -> dict[str, Any]:
        """Arguments by parameter name, without defaults. Raises TypeError when they do not fit."""
        signature = _signature(self.function)
        arguments = dict(signature.bind(None, *self.args, **self.kwargs).arguments)
        arguments.pop(next(iter(signature.parameters)))
        return arguments

    def argument_kinds(self) -> dict[str, str]:
        """How each argument was given: ``position``, ``star``, ``keyword`` or ``keywords``."""
        signature = _signature(self.function)
        kinds: Mapping[Any, str] = {
            inspect.Parameter.VAR_POSITIONAL: "star",
            inspect.Parameter.VAR_KEYWORD: "keywords",
        }
        names = list(signature.parameters)[: 1 + len(self.args)]
        return {
            name: kinds.get(signature.parameters[name].kind)
            or ("position" if name in names and name not in self.kwargs else "keyword")
            for name in self.arguments()
        }


class _Thread(threading.local):
    listener: Listener | None = None
    stack: tuple[linen.Module, ...] = ()


_thread = _Thread()
_default: list[Listener] = []  # of every thread that has none of its own


@lru_cache(maxsize=4096)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Give this thread another listener for a while; None: nobody listens."""
    before, stack = _thread.listener, _thread.stack
    _thread.listener, _thread.stack = listener or _NOBODY, ()
    try:
        yield
    finally:
        _thread.listener, _thread.stack = before, stack


class _Nobody:
    def on_class(self, cls: type[linen.Module], frame: FrameType) -> None:
        """Nothing."""

    def on_instance(self, module: linen.Module) -> None:
        """Nothing."""

    def on_call(self, module: linen.Module, function: Callable[..., Any], call: Call) -> None:
        """Nothing."""


_NOBODY = _Nobody()


def _listener() -> Listener:
    return _thread.listener or (_default[0] if _default else _NOBODY)


def install(listener: Listener) -> None:
    """Have ``listener`` told of everything from now on; only the first call does something."""
    if _default:
        return
    _default.append(listener)
    init_subclass: Any = vars(linen.Module)["__init_subclass__"].__func__
    post_init: Any = linen.Module.__post_init__
    call_method: Any = linen.Module._call_wrapped_method

    def subclass_hook(cls: type[linen.Module], *args: Any, **kwargs: Any) -> None:
        init_subclass(cls, *args, **kwargs)
        _listener().on_class(cls, sys._getframe(1))

    def post_init_hook(self: linen.Module) -> None:
        post_init(self)
        _listener().on_instance(self)

    def call_hook(self: linen.Module, fun: Any, args: Any, kwargs: Any) -> Any:
        stack = _thread.stack
        name = getattr(fun, "__name__", "")
        if name == "setup" or not hasattr(type(self), name):  # a function that a transform made
            return call_method(self, fun, args, kwargs)
        call = Call(fun, args, kwargs, stack[-1] if stack else None)
        _listener().on_call(self, fun, call)
        _thread.stack = (*stack, self)
        try:
            return call_method(self, fun, args, kwargs)
        finally:
            _thread.stack = stack

    linen.Module.__init_subclass__ = classmethod(subclass_hook)  # type: ignore[assignment]
    linen.Module.__post_init__ = post_init_hook  # type: ignore[method-assign]
    linen.Module._call_wrapped_method = call_hook  # type: ignore[method-assign]
