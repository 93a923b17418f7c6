"""Flax's own ``tests/linen``, rewritten and run where ``flax.linen`` cannot be imported."""
