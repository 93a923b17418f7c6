"""Which methods of a class a lifted transformation wraps: ``__call__``, or those of ``methods=``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from flax import nnx

from nnx_migrate.nn.building.factory import Factory

PASSES_ON = "_passes_on"  # of a class whose calls go on to those of its base
T = TypeVar("T")
Methods = Mapping[str, Mapping[str, Any]] | Sequence[str] | None
Wrap = Callable[[Callable[..., Any], Mapping[str, Any]], Callable[..., Any]]


def lift_calls(
    target: T,
    name: str,
    wrap: Wrap,
    options: Mapping[str, Any],
    methods: Methods = None,
) -> T:
    """``target`` with calls that go through ``wrap(function, options)``.

    Of a class it is a subclass called ``<name><class>``, which automatic submodule names count, with
    the same constructor; of a ``functools.partial`` of one, a partial of that; of a factory of
    built-in layers, a factory; of a function (or a method in a class body) the wrapped function.

    Args:
      methods: names of the methods to wrap, or a dict that gives each its own options; None means
        ``__call__``.

    Raises:
      TypeError: ``target`` is neither a module class nor a function.
    """
    if isinstance(target, functools.partial):
        inner = lift_calls(target.func, name, wrap, options, methods)
        return cast(T, functools.partial(inner, *target.args, **target.keywords))
    if isinstance(target, Factory):

        def lifted(kind: type[Any]) -> type[Any]:
            return lift_calls(kind, name, wrap, options, methods)

        return cast(T, lift_factory(target, name, target, lifted))
    if inspect.isfunction(target):
        return cast(T, wrap(target, options))
    if not (isinstance(target, type) and issubclass(target, nnx.Module)):
        raise TypeError(f"expected a transformation to get an nnx.Module class, found {target!r}")
    body: dict[str, Any] = {"__module__": target.__module__, "__doc__": target.__doc__}
    body[PASSES_ON] = True
    for method, own in options_by_method(methods, options).items():
        # Only ``target``'s own method is wrapped, so the wrapped function never calls itself.
        body[method] = wrap(getattr(target, method), own)
    return cast(T, type(name + target.__name__, (target,), body))


def lift_factory(
    factory: Factory[Any, Any],
    name: str,
    make: Callable[..., Any],
    lifted: Callable[[type[Any]], type[Any]],
) -> Factory[Any, Any]:
    """A factory of built-in layers as one of lifted layers.

    Args:
      name: what stands before the layer's Linen name.
      make: builds a layer from the factory's arguments.
      lifted: a subclass of the layer's class, which the layer becomes.
    """
    kinds: dict[type[Any], type[Any]] = {}

    def build(*args: Any, **kwargs: Any) -> Any:
        layer = make(*args, **kwargs)
        kind = type(layer)
        if kind not in kinds:
            kinds[kind] = lifted(kind)
            kinds[kind].__name__ = name + factory.linen_name
        layer.__class__ = kinds[kind]
        return layer

    return Factory(name + factory.linen_name, build)


def options_by_method(methods: Methods, options: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The options of every method to lift: ``options``, or those that ``methods`` gives it."""
    if methods is None:
        return {"__call__": options}
    if isinstance(methods, Mapping):
        return dict(methods)
    return dict.fromkeys(methods, options)
