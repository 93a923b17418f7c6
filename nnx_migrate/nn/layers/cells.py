"""Recurrent cells with Linen's parameter names, numbers and initial carries.

``cell(carry, inputs) -> (carry, output)``; ``inputs`` is ``(*batch, in_features)``. The native cells
name or fuse their parameters otherwise, and the native GRU has no ``hn`` bias. Behaviour after flax
0.12.8, linen/recurrent.py; same in 0.12.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from flax.nnx.nn.linear import default_kernel_init

from nnx_migrate.nn.layers.cell_base import Cell, MemoryCell, RNNCellBase
from nnx_migrate.nn.variables.variables import param
from nnx_migrate.numerics.sequences import joint_product

__all__ = [
    "ConvLSTMCell",
    "GRUCell",
    "LSTMCell",
    "MGUCell",
    "OptimizedLSTMCell",
    "RNNCellBase",
    "SimpleCell",
]

_zeros = nnx.initializers.zeros_init()
_ones = nnx.initializers.ones_init()
_orthogonal = nnx.initializers.orthogonal()


def _dense(cell: Any, name: str, size: int, rngs: nnx.Rngs, **options: Any) -> None:
    """Give ``cell`` an ``nnx.Linear`` under Linen's name (``if`` and ``in`` are keywords)."""
    layer = nnx.Linear(
        size,
        cell.out_features,
        dtype=cell.dtype,
        param_dtype=cell.param_dtype,
        rngs=rngs,
        **options,
    )
    setattr(cell, name, layer)


class LSTMCell(MemoryCell):
    """``linen.LSTMCell``: parameters ``ii if ig io`` (no bias) and ``hi hf hg ho``."""

    def __init__(
        self,
        features: int,
        gate_fn: Any = nnx.sigmoid,
        activation_fn: Any = nnx.tanh,
        kernel_init: Any = default_kernel_init,
        recurrent_kernel_init: Any = _orthogonal,
        bias_init: Any = _zeros,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        carry_init: Any = _zeros,
        *,
        in_features: int,
        carry_features: int | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self._store(features=features, gate_fn=gate_fn, activation_fn=activation_fn)
        self._store(dtype=dtype, param_dtype=param_dtype, carry_init=carry_init)
        self.carry_features = carry_features
        for gate in "ifgo":
            _dense(self, f"i{gate}", in_features, rngs, use_bias=False, kernel_init=kernel_init)
            _dense(
                self,
                f"h{gate}",
                self.out_features,
                rngs,
                kernel_init=recurrent_kernel_init,
                bias_init=bias_init,
            )

    def __call__(self, carry: Any, inputs: jax.Array) -> Any:
        """One step: the new carry and the output."""
        memory, hidden = carry

        def gate(name: str) -> Any:
            projection = getattr(self, f"i{name}")(inputs)
            return projection + getattr(self, f"h{name}")(hidden)

        i = self.gate_fn(gate("i"))
        f = self.gate_fn(gate("f"))
        g = self.activation_fn(gate("g"))
        o = self.gate_fn(gate("o"))
        memory = f * memory + i * g
        hidden = o * self.activation_fn(memory)
        return (memory, hidden), hidden


class _DenseParams(nnx.Module):
    """``kernel`` and ``bias`` of one gate, used by the fused product of all gates."""

    def __init__(
        self,
        shape: tuple[int, int],
        kernel_init: Any,
        bias_init: Any,
        dtype: Any,
        rngs: nnx.Rngs,
    ) -> None:
        self.kernel = param(rngs, kernel_init, shape, dtype)
        self.bias = nnx.data(None)
        if bias_init is not None:
            self.bias = param(rngs, bias_init, shape[1:], dtype)


class OptimizedLSTMCell(MemoryCell):
    """``linen.OptimizedLSTMCell``: :class:`LSTMCell` with one product for all gates."""

    def __init__(
        self,
        features: int,
        gate_fn: Any = nnx.sigmoid,
        activation_fn: Any = nnx.tanh,
        kernel_init: Any = default_kernel_init,
        recurrent_kernel_init: Any = _orthogonal,
        bias_init: Any = _zeros,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        carry_init: Any = _zeros,
        *,
        in_features: int,
        carry_features: int | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self._store(features=features, gate_fn=gate_fn, activation_fn=activation_fn)
        self._store(dtype=dtype, param_dtype=param_dtype, carry_init=carry_init)
        self.carry_features = carry_features
        width = self.out_features
        for gate in "ifgo":
            inputs = _DenseParams((in_features, width), kernel_init, None, param_dtype, rngs)
            setattr(self, f"i{gate}", inputs)
            hidden = _DenseParams(
                (width, width), recurrent_kernel_init, bias_init, param_dtype, rngs
            )
            setattr(self, f"h{gate}", hidden)

    def _gates(self, prefix: str, inputs: jax.Array) -> list[jax.Array]:
        """The four products of ``inputs`` with the gates' kernels, computed as one."""
        gates = [getattr(self, prefix + gate) for gate in "ifgo"]
        kernels = [gate.kernel[...] for gate in gates]
        biases = None if gates[0].bias is None else [gate.bias[...] for gate in gates]
        return joint_product(inputs, kernels, biases, self.dtype)

    def __call__(self, carry: Any, inputs: jax.Array) -> Any:
        """One step: the new carry and the output."""
        memory, hidden = carry
        h_i, h_f, h_g, h_o = self._gates("h", hidden)
        i_i, i_f, i_g, i_o = self._gates("i", inputs)
        i = self.gate_fn(h_i + i_i)
        f = self.gate_fn(h_f + i_f)
        g = self.activation_fn(h_g + i_g)
        o = self.gate_fn(h_o + i_o)
        memory = f * memory + i * g
        hidden = o * self.activation_fn(memory)
        return (memory, hidden), hidden


class SimpleCell(Cell):
    """``linen.SimpleCell``: parameters ``i`` and ``h`` (no bias)."""

    i: nnx.Linear
    h: nnx.Linear
    residual: bool

    def __init__(
        self,
        features: int,
        activation_fn: Any = nnx.tanh,
        kernel_init: Any = default_kernel_init,
        recurrent_kernel_init: Any = _orthogonal,
        bias_init: Any = _zeros,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        carry_init: Any = _zeros,
        residual: bool = False,
        *,
        in_features: int,
        carry_features: int | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self._store(features=features, activation_fn=activation_fn, residual=residual)
        self._store(dtype=dtype, param_dtype=param_dtype, carry_init=carry_init)
        self.carry_features = carry_features
        _dense(self, "i", in_features, rngs, kernel_init=kernel_init, bias_init=bias_init)
        _dense(
            self, "h", self.out_features, rngs, use_bias=False, kernel_init=recurrent_kernel_init
        )

    def __call__(self, carry: jax.Array, inputs: jax.Array) -> Any:
        """One step: the new carry and the output."""
        new = self.i(inputs) + self.h(carry)
        if self.residual:
            new += carry
        new = self.activation_fn(new)
        return new, new


class GRUCell(Cell):
    """``linen.GRUCell``: parameters ``ir iz in`` and ``hr hz`` (no bias) and ``hn``."""

    ir: nnx.Linear
    iz: nnx.Linear
    hr: nnx.Linear
    hz: nnx.Linear
    hn: nnx.Linear

    def __init__(
        self,
        features: int,
        gate_fn: Any = nnx.sigmoid,
        activation_fn: Any = nnx.tanh,
        kernel_init: Any = default_kernel_init,
        recurrent_kernel_init: Any = _orthogonal,
        bias_init: Any = _zeros,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        carry_init: Any = _zeros,
        *,
        in_features: int,
        carry_features: int | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self._store(features=features, gate_fn=gate_fn, activation_fn=activation_fn)
        self._store(dtype=dtype, param_dtype=param_dtype, carry_init=carry_init)
        self.carry_features = carry_features
        for gate in "rzn":
            _dense(
                self, f"i{gate}", in_features, rngs, kernel_init=kernel_init, bias_init=bias_init
            )
            _dense(
                self,
                f"h{gate}",
                self.out_features,
                rngs,
                use_bias=gate == "n",
                kernel_init=recurrent_kernel_init,
                bias_init=bias_init,
            )

    def __call__(self, carry: jax.Array, inputs: jax.Array) -> Any:
        """One step: the new carry and the output."""
        r = self.gate_fn(self.ir(inputs) + self.hr(carry))
        z = self.gate_fn(self.iz(inputs) + self.hz(carry))
        n = self.activation_fn(getattr(self, "in")(inputs) + r * self.hn(carry))
        new = (1.0 - z) * n + z * carry
        return new, new


class MGUCell(Cell):
    """``linen.MGUCell``: parameters ``if in``, ``hf`` (no bias) and ``hn`` (bias: ``reset_gate``)."""

    hf: nnx.Linear
    hn: nnx.Linear

    def __init__(
        self,
        features: int,
        gate_fn: Any = nnx.sigmoid,
        activation_fn: Any = nnx.tanh,
        kernel_init: Any = default_kernel_init,
        recurrent_kernel_init: Any = _orthogonal,
        forget_bias_init: Any = _ones,
        activation_bias_init: Any = _zeros,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        carry_init: Any = _zeros,
        reset_gate: bool = True,
        *,
        in_features: int,
        carry_features: int | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self._store(features=features, gate_fn=gate_fn, activation_fn=activation_fn)
        self._store(dtype=dtype, param_dtype=param_dtype, carry_init=carry_init)
        self.carry_features = carry_features
        self.reset_gate = reset_gate
        inits = {"f": forget_bias_init, "n": activation_bias_init}
        for gate, bias_init in inits.items():
            _dense(
                self, f"i{gate}", in_features, rngs, kernel_init=kernel_init, bias_init=bias_init
            )
            _dense(
                self,
                f"h{gate}",
                self.out_features,
                rngs,
                use_bias=gate == "n" and reset_gate,
                kernel_init=recurrent_kernel_init,
                bias_init=activation_bias_init,
            )

    def __call__(self, carry: jax.Array, inputs: jax.Array) -> Any:
        """One step: the new carry and the output."""
        f = self.gate_fn(getattr(self, "if")(inputs) + self.hf(carry))
        x = self.hn(carry)
        if self.reset_gate:
            x *= f
        n = self.activation_fn(getattr(self, "in")(inputs) + x)
        new = (1.0 - f) * n + f * carry
        return new, new


class ConvLSTMCell(MemoryCell):
    """``linen.ConvLSTMCell``: convolutions ``ih`` and ``hh`` to the four gates.

    ``inputs`` is ``(*batch, *spatial, in_features)`` with one spatial axis per kernel axis.
    """

    ih: nnx.Conv
    hh: nnx.Conv
    kernel_size: tuple[int, ...]

    def __init__(
        self,
        features: int,
        kernel_size: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Any = "SAME",
        use_bias: bool = True,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        carry_init: Any = _zeros,
        *,
        in_features: int,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self._store(features=features, kernel_size=tuple(kernel_size), carry_init=carry_init)
        self._store(dtype=dtype, param_dtype=param_dtype)
        for name, size in (("ih", in_features), ("hh", features)):
            layer = nnx.Conv(
                size,
                4 * features,
                kernel_size,
                strides,
                padding=padding,
                use_bias=use_bias,
                dtype=dtype,
                param_dtype=param_dtype,
                rngs=rngs,
            )
            setattr(self, name, layer)

    def __call__(self, carry: Any, inputs: jax.Array) -> Any:
        """One step: the new carry and the output."""
        memory, hidden = carry
        i, g, f, o = jnp.split(self.ih(inputs) + self.hh(hidden), 4, axis=-1)
        f = nnx.sigmoid(f + 1)
        memory = f * memory + nnx.sigmoid(i) * jnp.tanh(g)
        hidden = nnx.sigmoid(o) * jnp.tanh(memory)
        return (memory, hidden), hidden

    @property
    def num_feature_axes(self) -> int:
        """The spatial axes and the channels."""
        return len(self.kernel_size) + 1
