"""`lazy`: an explicit NNX class inside lazy and functional code.

``lazy(MlpBlock)(width)(x)`` is Linen's call of a class whose constructor asks for sizes and ``rngs``:
the first call takes the sizes from its inputs and makes the variables, at Linen's path and from
Linen's keys. What the constructor asks for beyond sizes are the fields.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.module import Module
from nnx_migrate.linen.core.wrapping import compact

# Beside the counters of the scope's own keys: what calls drew, and how often it was made.
_DRAWN, _ROUNDS = "explicit draws", "explicit rounds"


@dataclasses.dataclass(frozen=True)
class Size:
    """A constructor argument that comes from an input of the first call.

    ``argument``: the input's name; None for the first. ``axis``: which of its dimensions; None for
    the whole shape.

    >>> lazy(MlpBlock, in_features=Size(axis=-1), length=Size("tokens", 1))
    """

    argument: str | None = None
    axis: int | None = -1

    def of(self, inputs: Mapping[str, Any]) -> Any:
        """The size in the inputs of a call."""
        name = next(iter(inputs)) if self.argument is None else self.argument
        shape = jnp.shape(inputs[name])
        return shape if self.axis is None else shape[self.axis]


class ExplicitInLazy(Module):
    """A lazy module whose calls are those of an explicit one; see `lazy`."""

    _sizes: ClassVar[Mapping[str, Size]] = {}

    def _explicit_class(self) -> Any:
        raise NotImplementedError

    def _call_explicit(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        scope, make = self.scope, self._constructor(method, args, kwargs)
        streams = {name: rng.rng for name, rng in scope.rngs.items()}
        path = next((rng.suffix for rng in scope.rngs.values()), scope.path)
        draws = scope.rng_counters.setdefault(_DRAWN, {})
        held = {col: scope._collection(col) for col in scope.root._variables}
        first = not any(held.values()) and scope.is_mutable_collection("params")
        if first:
            held = self._first(make, streams, path, method, args, kwargs)
        outputs, changed = nnm.apply(
            nnm.abstract(make),
            held,
            *args,
            rngs=streams,
            method=method,
            mutable=True if first else scope.mutable or (),
            scope_path=path,
            draws=draws,
            **kwargs,
        )
        # Linen's init makes state and leaves it as it starts, however often it calls the module.
        made = held if first else {} if self.is_initializing() else changed
        for collection, part in made.items():
            if scope.is_mutable_collection(collection):
                for name, value in part.items():
                    scope.put_variable(collection, name, value)
        return outputs

    def _first(
        self,
        make: Callable[..., Any],
        streams: dict[str, Any],
        path: tuple[str, ...],
        method: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> dict[str, Any]:
        counters = self.scope.rng_counters
        rounds = counters[_ROUNDS] = counters.get(_ROUNDS, -1) + 1
        model = nnm.build(make, rngs=streams, scope_path=path, rounds=rounds)
        if method != "__call__":
            return nnm.variables_of(model)
        return nnm.variables_of(model, *args, **kwargs)

    def _constructor(self, method: str, args: tuple[Any, ...], kwargs: Any) -> Callable[..., Any]:
        cls, sizes = self._explicit_class(), type(self)._sizes
        given = {field: getattr(self, field) for field in self._fields}
        if sizes:
            signature = inspect.signature(getattr(cls, method))
            bound = signature.bind(None, *args, **kwargs).arguments
            inputs = dict(list(bound.items())[1:])
            given |= {name: size.of(inputs) for name, size in sizes.items()}
        return functools.partial(cls, **given)


def lazy(cls: Any, **sizes: Size) -> Any:
    """The lazy class of an explicit one, for places that build and call modules as Linen does.

    Args:
      cls: a class of `flax.nnx.Module`.
      sizes: where each size comes from. Keyword-only arguments without a default need not be listed
        if they are called ``in_features`` (the last axis of the first input), ``NAME_features`` (the
        last axis of the input NAME) or ``NAME_shape`` (its shape).

    Raises:
      TypeError: it is no such class, or its constructor takes ``*args`` or ``**kwargs``.
    """
    if not isinstance(cls, type) or not issubclass(cls, nnx.Module) or issubclass(cls, Module):
        raise TypeError(f"expected a class of flax.nnx.Module to make lazy, found {cls!r}")
    return _lazy(cls, tuple(sorted(sizes.items())))


@functools.cache
def _lazy(cls: Any, declared: tuple[tuple[str, Size], ...]) -> Any:
    parameters = dict(list(inspect.signature(cls.__init__).parameters.items())[1:])
    parameters.pop("rngs", None)
    sizes = dict(declared)
    annotations: dict[str, Any] = {}
    body: dict[str, Any] = {"__module__": cls.__module__, "__doc__": cls.__doc__}
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"{cls.__qualname__}: a lazy class needs named arguments, found *{name}"
            )
        if name in sizes:
            continue
        size = _size_called(name) if _is_needed(parameter) else None
        if size is not None:
            sizes[name] = size
            continue
        annotations[name] = Any
        body[name] = _field(parameter)
    for name, value in _methods(cls):
        body[name] = _forward(name, value)
    body |= {
        "__annotations__": annotations,
        "__qualname__": cls.__qualname__,
        "_sizes": sizes,
        "_explicit_class": lambda self: cls,
    }
    make: Any = type(Module)
    return make(cls.__name__, (ExplicitInLazy,), body)


def _is_needed(parameter: inspect.Parameter) -> bool:
    return parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty


def _size_called(name: str) -> Size | None:
    """Where a size comes from by its name."""
    if name == "in_features":
        return Size()
    if name.endswith("_features"):
        return Size(name.removesuffix("_features"))
    if name.endswith("_shape"):
        return Size(name.removesuffix("_shape"), axis=None)
    return None


def _field(parameter: inspect.Parameter) -> Any:
    only = parameter.kind is parameter.KEYWORD_ONLY
    if parameter.default is parameter.empty:
        return dataclasses.field(kw_only=only)
    return dataclasses.field(default_factory=lambda: parameter.default, kw_only=only)


def _methods(cls: Any) -> list[tuple[str, Any]]:
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base is nnx.Module:
            break
        for name, value in vars(base).items():
            if inspect.isfunction(value) and (name == "__call__" or not name.startswith("_")):
                found.setdefault(name, value)
    return list(found.items())


def _forward(name: str, value: Any) -> Any:
    @functools.wraps(value)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._call_explicit(name, args, kwargs)

    return compact(method)
