"""Dropout with Linen's call signature and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from flax import nnx

from nnx_migrate.nn.variables.variables import mode, stream
from nnx_migrate.numerics.dropping import dropout


class Dropout(nnx.Dropout):
    """``nnx.Dropout`` with the signature and the errors of ``linen.Dropout``.

    Owns a stream forked from ``rng_collection`` (else ``params``, else ``default``). Built without
    ``rngs`` it works as long as nothing is dropped or the call passes ``rng``.

    Args:
      rate: probability of dropping.
      broadcast_dims: axes that share one mask.
      deterministic: whether to pass inputs through; here or in the call, not both. What
        ``eval()`` and ``train()`` set counts where the call says nothing.
      rng_collection: name of the stream.
    """

    def __init__(
        self,
        rate: float,
        broadcast_dims: Sequence[int] = (),
        deterministic: bool | None = None,
        rng_collection: str = "dropout",
        *,
        rngs: nnx.Rngs | nnx.RngStream | None = None,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self.rate = rate
        self.broadcast_dims = tuple(broadcast_dims)
        self.deterministic = deterministic
        self.is_fixed = deterministic is not None
        self.rng_collection = rng_collection
        self.rngs = nnx.data(None if rngs is None else stream(rngs, rng_collection))

    def __call__(  # type: ignore[override]
        self,
        inputs: jax.Array,
        deterministic: bool | None = None,
        rng: Any = None,
    ) -> jax.Array:
        """Drop elements of ``inputs`` (any shape, floating).

        Raises:
          ValueError: ``deterministic`` is given neither or both here and in the constructor, or a
            key is needed and there is none.
        """
        if mode("deterministic", self.deterministic, deterministic, is_fixed=self.is_fixed):
            return inputs
        return dropout(inputs, self.rate, self.broadcast_dims, lambda: self._key(rng))

    def _key(self, rng: Any) -> jax.Array:
        if rng is not None:
            return rng() if isinstance(rng, nnx.RngStream) else rng
        if self.rngs is None:
            raise ValueError(
                f"Dropout needs a key: construct it with rngs=nnx.Rngs({self.rng_collection}=...) "
                "or pass rng=key"
            )
        key: jax.Array = self.rngs()
        return key
