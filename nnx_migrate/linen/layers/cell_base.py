"""What recurrent cells share (flax 0.12.8, linen/recurrent.py)."""

from typing import Any

from flax.typing import PRNGKey
from jax import random

from nnx_migrate.linen.module import Module, nowrap


class RNNCellBase(Module):
    """A cell ``(carry, inputs) -> (carry, outputs)`` that :class:`RNN` can scan."""

    @nowrap
    def initialize_carry(self, rng: PRNGKey, input_shape: tuple[int, ...]) -> Any:
        """The first carry for inputs of ``input_shape``, in which there is no time axis."""
        raise NotImplementedError

    @property
    def num_feature_axes(self) -> int:
        """How many trailing axes of the input are not batch axes."""
        raise NotImplementedError


def array_carry(cell: Any, rng: Any, input_shape: tuple[int, ...]) -> Any:
    """A carry of one array ``(*batch, features)``."""
    return cell.carry_init(rng, (*input_shape[:-1], cell.features), cell.param_dtype)


def memory_carry(cell: Any, rng: Any, input_shape: tuple[int, ...]) -> tuple[Any, Any]:
    """A carry of memory and output, both ``(*input_shape[:-1], features)``."""
    memory_key, output_key = random.split(rng)
    memory = array_carry(cell, memory_key, input_shape)
    return memory, array_carry(cell, output_key, input_shape)
