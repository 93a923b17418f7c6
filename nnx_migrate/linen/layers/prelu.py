"""The activation with a parameter (flax 0.12.8, linen/activation.py)."""

import jax.numpy as jnp
from flax.typing import Array, Dtype

from nnx_migrate.linen.module import Module, compact


class PReLU(Module):
    """``inputs`` where they are positive, a learned multiple of them elsewhere.

    Variables: the scalar ``negative_slope``, of ``param_dtype``, first ``negative_slope_init``.
    """

    param_dtype: Dtype = jnp.float32
    negative_slope_init: float = 0.01

    @compact
    def __call__(self, inputs: Array) -> Array:
        """Activate an array of any shape, in its dtype."""
        first = self.param(
            "negative_slope", lambda key: jnp.asarray(self.negative_slope_init, self.param_dtype)
        )
        return jnp.where(inputs >= 0, inputs, jnp.asarray(first, inputs.dtype) * inputs)
