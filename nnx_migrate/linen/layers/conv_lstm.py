"""The convolutional LSTM cell (flax 0.12.8, linen/recurrent.py)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from flax.typing import Dtype, Initializer, PRNGKey
from jax.nn import initializers, sigmoid

from nnx_migrate.linen.layers.cell_base import RNNCellBase, memory_carry
from nnx_migrate.linen.layers.conv import Conv
from nnx_migrate.linen.module import compact, nowrap


class ConvLSTMCell(RNNCellBase):
    """An LSTM whose gates are convolutions; the carry is ``(c, h)`` and the output ``h'``.

    Submodules: ``ih`` of the inputs and ``hh`` of ``h``, each to all four gates.
    """

    features: int
    kernel_size: Sequence[int]
    strides: Sequence[int] | None = None
    padding: str | Sequence[tuple[int, int]] = "SAME"
    use_bias: bool = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    carry_init: Initializer = initializers.zeros

    @compact
    def __call__(self, carry: Any, inputs: Any) -> Any:
        """One step: ``inputs`` is ``(*batch, *spatial, in_features)``."""
        memory, hidden = carry
        conv = partial(
            Conv,
            features=4 * self.features,
            kernel_size=self.kernel_size,
            strides=self.strides,
            padding=self.padding,
            use_bias=self.use_bias,
            dtype=self.dtype,
            param_dtype=self.param_dtype,
        )
        gates = conv(name="ih")(inputs) + conv(name="hh")(hidden)
        i, g, f, o = jnp.split(gates, 4, axis=-1)
        f = sigmoid(f + 1)
        memory = f * memory + sigmoid(i) * jnp.tanh(g)
        hidden = sigmoid(o) * jnp.tanh(memory)
        return (memory, hidden), hidden

    @nowrap
    def initialize_carry(self, rng: PRNGKey, input_shape: tuple[int, ...]) -> Any:
        """Memory and output ``(*batch, *spatial, features)``, drawn by ``carry_init``."""
        return memory_carry(self, rng, input_shape)

    @property
    def num_feature_axes(self) -> int:
        """The spatial axes and the features."""
        return len(self.kernel_size) + 1
