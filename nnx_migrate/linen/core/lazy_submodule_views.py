"""What code around finds inside a lazy submodule of an explicit module: all that Linen's modules have.

``bound.encoder.layers[0](x)`` with an explicit ``bound`` and a lazy ``encoder``: each read and call is
one of the explicit module, in which the lazy one is bound to its scope.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from nnx_migrate.linen.core.context import context
from nnx_migrate.linen.core.tree import is_module

Path = tuple[Any, ...]


class Owner(Protocol):
    """The explicit class in a scope of lazy code: `explicit_calls.ExplicitCalls`."""

    def with_part(self, function: Callable[[Any], Any], part: Path, calls: bool) -> Any:
        """A function of the explicit module that reads one part of it, or calls it."""


class LazySubmoduleView:
    """A lazy submodule of an explicit module, or what it holds at some steps below."""

    def __init__(
        self, owner: Owner, part: Path, find: Callable[[Any], Any], steps: Path = ()
    ) -> None:
        self._owner = owner
        self._part = part
        self._find = find  # of a copy of the explicit module, its part
        self._steps = steps

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, with the keys and variables of the running call."""
        return self._run(self._steps, lambda module: module(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        """Whatever the module has of that name: methods and modules are bound in each call anew."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self._run((*self._steps, name), lambda value: value)

    def _run(self, steps: Path, function: Callable[[Any], Any]) -> Any:
        def run(model: Any) -> Any:
            value = context.bound(self._find(model))
            for step in steps:
                value = getattr(value, step) if isinstance(step, str) else value[step[0]]
            return self._outer_value(function(value), steps)

        return self._owner.with_part(run, self._part, calls=False)

    def _outer_value(self, value: Any, steps: Path) -> Any:
        """A value as it outlives the call: what is bound is looked up again."""
        if inspect.ismethod(value) and is_module(value.__self__):
            return functools.partial(self._call, steps)
        if is_module(value) and value.scope is not None:
            return LazySubmoduleView(self._owner, self._part, self._find, steps)
        if type(value) in (list, tuple):
            return type(value)(
                self._outer_value(one, (*steps, (index,))) for index, one in enumerate(value)
            )
        if isinstance(value, Mapping) and any(map(is_module, value.values())):
            return {name: self._outer_value(one, (*steps, (name,))) for name, one in value.items()}
        return value

    def _call(self, steps: Path, *args: Any, **kwargs: Any) -> Any:
        return self._run(steps, lambda method: method(*args, **kwargs))
