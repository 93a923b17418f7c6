"""Cells whose carry is their output: simple, GRU and MGU (flax 0.12.8, linen/recurrent.py)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from flax.typing import Dtype, Initializer, PRNGKey
from jax.nn import initializers, sigmoid, tanh

from nnx_migrate.linen.layers.cell_base import RNNCellBase, array_carry
from nnx_migrate.linen.layers.dense import Dense
from nnx_migrate.linen.layers.operations import default_kernel_init
from nnx_migrate.linen.module import compact, nowrap


def _layers(cell: Any, features: int) -> tuple[Any, Any]:
    """What builds the layers of the inputs and of the hidden state."""
    dense = partial(Dense, features=features, dtype=cell.dtype, param_dtype=cell.param_dtype)
    of_inputs = partial(dense, use_bias=True, kernel_init=cell.kernel_init)
    return of_inputs, partial(dense, use_bias=False, kernel_init=cell.recurrent_kernel_init)


class SimpleCell(RNNCellBase):
    """``h' = tanh(i(x) + h(h))``, with ``residual`` ``h' = tanh(i(x) + h(h) + h)``.

    Submodules: ``i`` of the inputs and ``h`` of the hidden state (no bias).
    """

    features: int
    activation_fn: Callable[..., Any] = tanh
    kernel_init: Initializer = default_kernel_init
    recurrent_kernel_init: Initializer = initializers.orthogonal()
    bias_init: Initializer = initializers.zeros
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    carry_init: Initializer = initializers.zeros
    residual: bool = False

    @compact
    def __call__(self, carry: Any, inputs: Any) -> Any:
        """One step: ``inputs`` is ``(*batch, in_features)``."""
        of_inputs, of_hidden = _layers(self, carry.shape[-1])
        inputs = of_inputs(bias_init=self.bias_init, name="i")(inputs)
        hidden = inputs + of_hidden(name="h")(carry)
        if self.residual:
            hidden += carry
        hidden = self.activation_fn(hidden)
        return hidden, hidden

    @nowrap
    def initialize_carry(self, rng: PRNGKey, input_shape: tuple[int, ...]) -> Any:
        """An array ``(*batch, features)`` drawn by ``carry_init``."""
        return array_carry(self, rng, input_shape)

    @property
    def num_feature_axes(self) -> int:
        """One: the features."""
        return 1


class GRUCell(RNNCellBase):
    """Reset, update and candidate: ``h' = (1 - z) * n + z * h``.

    Submodules: ``ir iz in`` of the inputs; ``hr hz`` (no bias) and ``hn`` of the hidden state.
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
        of_inputs, of_hidden = _layers(self, carry.shape[-1])
        of_inputs = partial(of_inputs, bias_init=self.bias_init)
        of_hidden = partial(of_hidden, bias_init=self.bias_init)
        r = self.gate_fn(of_inputs(name="ir")(inputs) + of_hidden(name="hr")(carry))
        z = self.gate_fn(of_inputs(name="iz")(inputs) + of_hidden(name="hz")(carry))
        candidate = of_inputs(name="in")(inputs)
        n = self.activation_fn(candidate + r * of_hidden(name="hn", use_bias=True)(carry))
        hidden = (1.0 - z) * n + z * carry
        return hidden, hidden

    @nowrap
    def initialize_carry(self, rng: PRNGKey, input_shape: tuple[int, ...]) -> Any:
        """An array ``(*batch, features)`` drawn by ``carry_init``."""
        return array_carry(self, rng, input_shape)

    @property
    def num_feature_axes(self) -> int:
        """One: the features."""
        return 1


class MGUCell(RNNCellBase):
    """The minimal gated unit: one gate forgets and, with ``reset_gate``, resets.

    Submodules: ``if in`` of the inputs; ``hf`` (no bias) and ``hn`` (bias: ``reset_gate``) of the hidden state.
    """

    features: int
    gate_fn: Callable[..., Any] = sigmoid
    activation_fn: Callable[..., Any] = tanh
    kernel_init: Initializer = default_kernel_init
    recurrent_kernel_init: Initializer = initializers.orthogonal()
    forget_bias_init: Initializer = initializers.ones
    activation_bias_init: Initializer = initializers.zeros
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    carry_init: Initializer = initializers.zeros
    reset_gate: bool = True

    @compact
    def __call__(self, carry: Any, inputs: Any) -> Any:
        """One step: ``inputs`` is ``(*batch, in_features)``."""
        of_inputs, of_hidden = _layers(self, carry.shape[-1])
        of_hidden = partial(of_hidden, bias_init=self.activation_bias_init)
        gate = of_inputs(name="if", bias_init=self.forget_bias_init)(inputs)
        f = self.gate_fn(gate + of_hidden(name="hf")(carry))
        x = of_hidden(name="hn", use_bias=self.reset_gate)(carry)
        if self.reset_gate:
            x *= f
        candidate = of_inputs(name="in", bias_init=self.activation_bias_init)(inputs)
        n = self.activation_fn(candidate + x)
        hidden = (1.0 - f) * n + f * carry
        return hidden, hidden

    @nowrap
    def initialize_carry(self, rng: PRNGKey, input_shape: tuple[int, ...]) -> Any:
        """An array ``(*batch, features)`` drawn by ``carry_init``."""
        return array_carry(self, rng, input_shape)

    @property
    def num_feature_axes(self) -> int:
        """One: the features."""
        return 1
