"""Parameters whose shape only the first call knows, where whoever builds a layer does not say it.

Until then such a parameter holds the key that its initialiser is given, so that it has its place, and
that place its key (:func:`nnx_migrate.nn.seeding.values.build`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_migrate.nn.variables.variables import param_key


def deferred_param(rngs: nnx.Rngs, init: Callable[..., Any]) -> nnx.Param[Any]:
    """A parameter to be made by :func:`initialize`: it exists, and its array does not.

    The first call makes it. Under ``jax.jit`` the caller must return the new state, and an optimiser is
    built after it: call the module once before, or take ``nnm.variables_of(model, *inputs)``.
    """
    return nnx.Param(param_key(rngs), moved_by_init=True, deferred_init=init)


def is_uninitialized(variable: nnx.Variable[Any]) -> bool:
    """Whether the array of a parameter is still to be made."""
    has_initializer = variable.get_metadata().get("deferred_init") is not None
    value = variable.get_value()
    return has_initializer and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def initialize(variable: nnx.Variable[Any], *args: Any) -> None:
    """Make the array, and the names of its axes; in place, since views of a module share variables."""
    made = nnx.Param(variable.get_metadata()["deferred_init"](variable.get_value(), *args))
    variable.set_value(made.get_value())
    variable.set_metadata({**made.get_metadata(), "moved_by_init": True})
