"""The equivariant linear layer."""

import numpy as np

CASE = {}


def linen():
    import e3nn_jax

    return e3nn_jax.flax.Linear("4x0e+2x1o")


def inputs():
    generator = np.random.default_rng(475)
    import e3nn_jax

    return (e3nn_jax.IrrepsArray("3x0e+1x1o", generator.normal(size=(2, 6)).astype(np.float32)),)
