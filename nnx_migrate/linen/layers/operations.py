"""What several layers ask of their fields."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from flax.core import meta
from jax.nn import initializers

default_kernel_init = initializers.lecun_normal()
default_embed_init = initializers.variance_scaling(1.0, "fan_in", "normal", out_axis=0)


class PromoteDtypeFn(Protocol):
    """What a layer casts its input and parameters with before it computes."""

    def __call__(
        self, *args: jax.Array | None, dtype: Any = None, inexact: bool = True
    ) -> list[Any]:
        """The arrays in one dtype, None where None came."""


def select_operation(
    factory: Any, operation: Any, default: Callable[..., Any]
) -> Callable[..., Any]:
    """The operation that a layer's ``*_cls`` and plain field ask for; the first has precedence."""
    chosen_one: Callable[..., Any] = default if operation is None else operation
    if factory is not None:
        chosen_one = factory()
    return chosen_one


def flat_init(
    init: Callable[..., Any], flat_shape: Callable[[Sequence[int]], tuple[int, ...]]
) -> Callable[..., Any]:
    """An initialiser that draws in the shape ``flat_shape(shape)``, for its fans, and reshapes.

    A box of axis names that ``init`` returns stays around the result.
    """

    def draw(rng: Any, shape: Sequence[int], dtype: Any = jnp.float32) -> Any:
        value = init(rng, flat_shape(shape), dtype)
        if isinstance(value, meta.AxisMetadata):
            return meta.replace_boxed(value, jnp.reshape(value.unbox(), shape))
        return jnp.reshape(value, shape)

    return draw


def add_features(y: jax.Array, bias: Any) -> jax.Array:
    """``y + bias`` with ``bias`` of shape ``(features,)``; ``y`` where it is None."""
    if bias is not None:
        y += jnp.reshape(bias, (1,) * (y.ndim - 1) + (-1,))
    return y
