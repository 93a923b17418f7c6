"""Shapes of library calls: jax.numpy, jax.lax, jax.nn, flax.linen functions, builtins.

A symbol that is not listed gives Unknown: size inference never answers when unsure.
"""
