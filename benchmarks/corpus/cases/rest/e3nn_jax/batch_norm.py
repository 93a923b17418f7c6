"""The equivariant batch normalization in training."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    import e3nn_jax

    return e3nn_jax.flax.BatchNorm()


def inputs():
    import e3nn_jax
    import jax.numpy as jnp

    generator = np.random.default_rng(893)
    values = e3nn_jax.IrrepsArray(
        "3x0e+1x1o", jnp.asarray(generator.normal(size=(4, 6)).astype(np.float32))
    )
    return (values,), {"use_running_average": False}
