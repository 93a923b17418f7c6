"""nnx-migrate: move a Flax Linen code base to Flax NNX, and prove that nothing changed."""

__version__ = "0.1.0"
