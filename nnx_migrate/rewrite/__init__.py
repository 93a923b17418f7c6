"""Rewriting Linen classes, call sites and references to NNX; nothing here loads jax."""
