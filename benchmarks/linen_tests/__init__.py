"""Flax's own ``tests/linen`` as a corpus: what becomes of each of its module classes."""
