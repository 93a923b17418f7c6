"""Embedding tables (flax 0.12.8, linen/linear.py)."""

import jax.numpy as jnp
from flax.typing import Array, Dtype, Initializer

from nnx_migrate.linen.layers.operations import PromoteDtypeFn, default_embed_init
from nnx_migrate.linen.module import Module
from nnx_migrate.numerics.dtypes import promote_dtype


class Embed(Module):
    """Rows of a table by integer index; an index past the end gives NaN.

    Variables: ``embedding`` (num_embeddings, features) of ``param_dtype``. Of a table with one row every
    index gives that row.
    """

    num_embeddings: int
    features: int
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    embedding_init: Initializer = default_embed_init
    promote_dtype: PromoteDtypeFn = promote_dtype

    def setup(self) -> None:
        """Make the table."""
        shape = (self.num_embeddings, self.features)
        self.embedding = self.param("embedding", self.embedding_init, shape, self.param_dtype)

    def __call__(self, inputs: Array) -> Array:
        """Look up ``(*batch,)`` integers: ``(*batch, features)`` in ``dtype``.

        Raises:
          ValueError: ``inputs`` are not integers.
        """
        if not jnp.issubdtype(inputs.dtype, jnp.integer):
            raise ValueError(f"Input type must be an integer, found {inputs.dtype}")
        (table,) = self.promote_dtype(self.embedding, dtype=self.dtype, inexact=False)
        if self.num_embeddings == 1:
            return jnp.broadcast_to(table, (*inputs.shape, self.features))
        # numpy arrays cannot be indexed by traced integers; take serves them too.
        return jnp.take(table, inputs, axis=0)

    def attend(self, query: Array) -> Array:
        """Products of ``(*batch, features)`` with every row: ``(*batch, num_embeddings)``."""
        query, table = self.promote_dtype(query, self.embedding, dtype=self.dtype)
        return jnp.dot(query, table.T)
