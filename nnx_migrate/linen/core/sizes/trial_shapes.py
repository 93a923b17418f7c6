"""What modules hold that are built with sizes on trial, without values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes.declaration import Path
from nnx_migrate.numerics.known_values import known_values

T = TypeVar("T")
Shapes = Mapping[Path, tuple[int, ...]]  # of variables, by collection and path
# Two widths that no other dimension has, and that can be split into groups.
PRIMES = (61 * 64 * 15, 67 * 64 * 15)


def shapes_of(tree: Any) -> dict[Path, tuple[int, ...]]:
    """The shapes of a tree's arrays and boxes by path."""
    leaves = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda one: hasattr(one, "unbox"))[
        0
    ]
    return {
        tuple(str(getattr(step, "key", step)) for step in path): jnp.shape(
            one.unbox() if hasattr(one, "unbox") else one
        )
        for path, one in leaves
    }


def built_shapes(make: Callable[..., Any], sizes: dict[str, Any]) -> dict[Path, tuple[int, ...]]:
    """The shapes of the variables of a module, by collection and Linen's path."""

    def variables(key: jax.Array) -> Any:
        return nnm.variables_of(make(**sizes, rngs=nnx.Rngs(key)))

    with known_values():  # all but what hangs on the key
        return shapes_of(jax.eval_shape(variables, jax.eval_shape(jax.random.key, 0)))


def modules_of(model: nnx.Module) -> dict[tuple[Any, ...], nnx.Module]:
    """The modules of a module, itself among them, by path."""
    return {path: one for path, one in nnx.iter_graph(model) if isinstance(one, nnx.Module)}


def options_of(module: nnx.Module) -> tuple[str, dict[str, Any]]:
    """What it holds beside variables; lifted classes are made anew, so their names count."""
    plain = (int, float, str, tuple, type(None))
    own = {name: one for name, one in vars(module).items() if isinstance(one, plain)}
    return type(module).__qualname__, own


def are_alike(make: Callable[..., Any], *sizes: dict[str, Any]) -> bool:
    """Whether modules of either sizes hold the same."""
    one, other = (nnm.abstract(functools.partial(make, **each)) for each in sizes)
    return _options(one) == _options(other) and shapes_of(nnx.state(one)) == shapes_of(
        nnx.state(other)
    )


def _options(model: nnx.Module) -> dict[Any, Any]:
    return {path: options_of(one) for path, one in modules_of(model).items()}


def try_build(build: Callable[[], T]) -> T | None:
    """What is built; None where it cannot be: without a size that it needs, of a shape of too few axes."""
    try:
        return build()
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        return None
