"""Long short-term memory cells (flax 0.12.8, linen/recurrent.py)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from flax.typing import Array, Dtype, Initializer, PrecisionLike, PRNGKey
from jax.nn import initializers, sigmoid, tanh

from nnx_migrate.linen.layers.cell_base import RNNCellBase, memory_carry
from nnx_migrate.linen.layers.dense import Dense
from nnx_migrate.linen.layers.operations import default_kernel_init
from nnx_migrate.linen.module import Module, compact, nowrap
from nnx_migrate.numerics.sequences import joint_product

_GATES = "ifgo"  # input, forget, cell, output


class LSTMCell(RNNCellBase):
    """``c' = f * c + i * g``, ``h' = o * tanh(c')``; the carry is ``(c, h)`` and the output ``h'``.

    Submodules: ``ii if ig io`` of the inputs (no bias) and ``hi hf hg ho`` of ``h``. The gates are as wide as
    the ``h`` that comes in; ``features`` is the width of the carries that the cell makes.
    """

    features: int
    gate_fn: Callable[..., Any] = sigmoid
    activation_fn: Callable[..., Any] = tanh
    kernel_init: Initializer = default_kernel_init
    recurrent_kernel_init: Initializer = initializers.orthogonal()
    bias_init: Initializer = initializers.zeros
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    carry_init: Initializer = initializers.zeros

    @compact
    def __call__(self, carry: Any, inputs: Any) -> Any:
        """One step: ``inputs`` is ``(*batch, in_features)``."""
        memory, hidden = carry
        dense = partial(
            Dense, features=hidden.shape[-1], dtype=self.dtype, param_dtype=self.param_dtype
        )
        of_inputs = partial(dense, use_bias=False, kernel_init=self.kernel_init)
        of_hidden = partial(
            dense,
            use_bias=True,
            kernel_init=self.recurrent_kernel_init,
            bias_init=self.bias_init,
        )

        def gate(name: str) -> Any:
            return of_inputs(name=f"i{name}")(inputs) + of_hidden(name=f"h{name}")(hidden)

        i = self.gate_fn(gate("i"))
        f = self.gate_fn(gate("f"))
        g = self.activation_fn(gate("g"))
        o = self.gate_fn(gate("o"))
        memory = f * memory + i * g
        hidden = o * self.activation_fn(memory)
        return (memory, hidden), hidden

    @nowrap
    def initialize_carry(self, rng: PRNGKey, input_shape: tuple[int, ...]) -> Any:
        """Memory and output ``(*batch, features)``, each drawn by ``carry_init`` with its own key."""
        return memory_carry(self, rng, input_shape)

    @property
    def num_feature_axes(self) -> int:
        """One: the features."""
        return 1


class DenseParams(Module):
    """The parameters of a ``Dense`` layer under its names, unused: it returns ``(kernel, bias or None)``."""

    features: int
    use_bias: bool = True
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = default_kernel_init
    bias_init: Initializer = initializers.zeros

    @compact
    def __call__(self, inputs: Array) -> tuple[Array, Array | None]:
        """The parameters for inputs ``(*batch, in_features)``."""
        shape = (inputs.shape[-1], self.features)
        kernel = self.param("kernel", self.kernel_init, shape, self.param_dtype)
        bias = None
        if self.use_bias:
            bias = self.param("bias", self.bias_init, (self.features,), self.param_dtype)
        return kernel, bias


class OptimizedLSTMCell(RNNCellBase):
    """:class:`LSTMCell`, its parameters and its maths, with one product for all gates."""

    features: int
    gate_fn: Callable[..., Any] = sigmoid
    activation_fn: Callable[..., Any] = tanh
    kernel_init: Initializer = default_kernel_init
    recurrent_kernel_init: Initializer = initializers.orthogonal()
    bias_init: Initializer = initializers.zeros
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    carry_init: Initializer = initializers.zeros

    @compact
    def __call__(
        self, carry: tuple[Array, Array], inputs: Array
    ) -> tuple[tuple[Array, Array], Array]:
        """One step: ``inputs`` is ``(*batch, in_features)``."""
        memory, hidden = carry
        params = partial(
            DenseParams,
            features=hidden.shape[-1],
            param_dtype=self.param_dtype,
            bias_init=self.bias_init,
        )
        of_inputs = partial(params, use_bias=False, kernel_init=self.kernel_init)
        of_hidden = partial(params, use_bias=True, kernel_init=self.recurrent_kernel_init)
        input_kernels, hidden_kernels, biases = [], [], []
        for gate in _GATES:
            input_kernels.append(of_inputs(name=f"i{gate}")(inputs)[0])
            kernel, bias = of_hidden(name=f"h{gate}")(hidden)
            hidden_kernels.append(kernel)
            biases.append(bias)
        h_i, h_f, h_g, h_o = joint_product(hidden, hidden_kernels, biases, self.dtype)
        i_i, i_f, i_g, i_o = joint_product(inputs, input_kernels, None, self.dtype)
        i = self.gate_fn(h_i + i_i)
        f = self.gate_fn(h_f + i_f)
        g = self.activation_fn(h_g + i_g)
        o = self.gate_fn(h_o + i_o)
        memory = f * memory + i * g
        hidden = o * self.activation_fn(memory)
        return (memory, hidden), hidden

    @nowrap
    def initialize_carry(self, rng: PRNGKey, input_shape: tuple[int, ...]) -> Any:
        """Memory and output ``(*batch, features)``, each drawn by ``carry_init`` with its own key."""
        return memory_carry(self, rng, input_shape)

    @property
    def num_feature_axes(self) -> int:
        """One: the features."""
        return 1
