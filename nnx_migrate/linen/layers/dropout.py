"""Dropout (flax 0.12.8, linen/stochastic.py)."""

from collections.abc import Sequence
from typing import Any

from flax.typing import PRNGKey

from nnx_migrate.linen.module import Module, compact, merge_param
from nnx_migrate.numerics.dropping import dropout


class Dropout(Module):
    """Zero a fraction ``rate`` of the input and scale the rest.

    ``deterministic`` (pass the input through) is a field or an argument of the call, not both. The key is
    drawn from the stream ``rng_collection`` unless the call gives one.
    """

    rate: float
    broadcast_dims: Sequence[int] = ()
    deterministic: bool | None = None
    rng_collection: str = "dropout"

    @compact
    def __call__(
        self, inputs: Any, deterministic: bool | None = None, rng: PRNGKey | None = None
    ) -> Any:
        """Drop elements of a floating array of any shape; axes in ``broadcast_dims`` share a mask."""
        if merge_param("deterministic", self.deterministic, deterministic):
            return inputs

        def key() -> Any:
            return self.make_rng(self.rng_collection) if rng is None else rng

        return dropout(inputs, self.rate, self.broadcast_dims, key)
