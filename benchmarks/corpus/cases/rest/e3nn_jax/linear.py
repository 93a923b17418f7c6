"""The equivariant linear layer."""

import numpy as np

CASE = {}


def linen():
    import e3nn_jax

    return e3nn_jax.flax.Linear("4x0e+2x1o")


def inputs():
    import e3nn_jax
    import jax.numpy as jnp

    generator = np.random.default_rng(475)
    return (
        e3nn_jax.IrrepsArray(
            "3x0e+1x1o", jnp.asarray(generator.normal(size=(2, 6)).astype(np.float32))
        ),
    )
