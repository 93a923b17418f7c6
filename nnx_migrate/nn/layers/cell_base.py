"""What recurrent cells share: initial carries and the protocol that ``RNN`` relies on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import random

_zeros = nnx.initializers.zeros_init()


class RNNCellBase(nnx.Module):
    """What :class:`nnx_migrate.nn.RNN` needs of a cell; migrated cells derive from it."""

    def initialize_carry(self, rng: Any, input_shape: Sequence[int]) -> Any:
        """The first carry for inputs of ``input_shape`` (time axis removed)."""
        raise NotImplementedError(f"{type(self).__name__} defines no initialize_carry")

    @property
    def num_feature_axes(self) -> int:
        """How many trailing axes of the input are not batch axes."""
        raise NotImplementedError(f"{type(self).__name__} defines no num_feature_axes")


class Cell(RNNCellBase):
    """A cell whose carry is one array ``(*batch, features)``.

    Linen's gates are as wide as the hidden state they are given; where that is not ``features`` wide,
    the constructor takes ``carry_features``. Carries that the cell makes are ``features`` wide.
    """

    features: int
    carry_features: int | None = None
    gate_fn: Any
    activation_fn: Any
    carry_init: Any
    dtype: Any
    param_dtype: Any

    @staticmethod
    def make_carry(
        rng: Any,
        input_shape: Sequence[int],
        *,
        features: int,
        carry_init: Any = _zeros,
        param_dtype: Any = jnp.float32,
        **unused_fields: Any,
    ) -> Any:
        """What ``initialize_carry`` of a cell with these fields returns; no cell is built."""
        return carry_init(rng, (*input_shape[:-1], features), param_dtype)

    def initialize_carry(self, rng: Any, input_shape: Sequence[int]) -> Any:
        """The first carry for inputs of ``input_shape``; ``rng`` feeds ``carry_init``."""
        return type(self).make_carry(
            rng,
            input_shape,
            features=self.features,
            carry_init=self.carry_init,
            param_dtype=self.param_dtype,
        )

    @property
    def num_feature_axes(self) -> int:
        """The last axis only."""
        return 1

    @property
    def out_features(self) -> int:
        """Size of the output's last axis."""
        return self.carry_features or self.features

    def _store(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)


class MemoryCell(Cell):
    """A cell whose carry is a pair of arrays ``(memory, hidden)``."""

    @staticmethod
    def make_carry(
        rng: Any,
        input_shape: Sequence[int],
        *,
        features: int,
        carry_init: Any = _zeros,
        param_dtype: Any = jnp.float32,
        **unused_fields: Any,
    ) -> Any:
        """What ``initialize_carry`` of a cell with these fields returns; no cell is built."""
        memory_key, hidden_key = random.split(rng)
        shape = (*input_shape[:-1], features)
        return (
            carry_init(memory_key, shape, param_dtype),
            carry_init(hidden_key, shape, param_dtype),
        )
