"""Shapes of library calls: jax.numpy, jax.lax, jax.nn, flax.linen functions, builtins.

A symbol that is not listed gives Unknown: size inference never answers when unsure.
"""

from nnx_migrate.sizes.library.call import LibraryCall, Summaries
from nnx_migrate.sizes.library.dispatch import call_library

__all__ = ["LibraryCall", "Summaries", "call_library"]
