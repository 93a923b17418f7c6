"""The lazy form of whatever builds explicit modules: a class, a partial of one, a layer's factory."""

from __future__ import annotations

import functools
from typing import Any

from flax import nnx

from nnx_migrate.linen import (
    attention,
    combinators,
    linear,
    normalization,
    recurrent,
    stochastic,
)
from nnx_migrate.linen.core.explicit import lazy_class
from nnx_migrate.linen.core.sizes.declaration import Size
from nnx_migrate.nn.building.factory import Factory

_LAYERS = (attention, combinators, linear, normalization, recurrent, stochastic)


def lazy(value: Any, **sizes: Size) -> Any:
    """What builds lazily what ``value`` builds, for places that build and call modules as Linen does.

    ``lazy(self.block)(8)`` in an explicit class: its first call makes the block's variables.

    Args:
      value: a class of `flax.nnx.Module`, one of the factories of `nnx_migrate.nn.factory`, or a
        `functools.partial` of either.
      sizes: as of `nnx_migrate.linen.core.explicit.lazy_class`.

    Raises:
      TypeError: it is none of these, or a constructor takes ``*args`` or ``**kwargs``.
    """
    if isinstance(value, functools.partial):
        return functools.partial(lazy(value.func, **sizes), *value.args, **value.keywords)
    if isinstance(value, Factory):
        return next(
            vars(module)[value.linen_name] for module in _LAYERS if value.linen_name in vars(module)
        )
    return lazy_class(value, **sizes)


def as_lazy(value: Any) -> Any:
    """What builds lazily what ``value`` builds, if it is a class or a partial of one; any other value as it is.

    For what only the running program knows: ``as_lazy(getattr(models, name))``, ``as_lazy(self.block)(8)``.
    """
    if isinstance(value, functools.partial):
        return functools.partial(as_lazy(value.func), *value.args, **value.keywords)
    is_module = isinstance(value, type) and issubclass(value, nnx.Module)
    return lazy(value) if is_module or isinstance(value, Factory) else value
