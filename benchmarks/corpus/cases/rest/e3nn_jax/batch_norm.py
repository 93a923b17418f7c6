"""The equivariant batch normalization in training."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    import e3nn_jax

    return e3nn_jax.flax.BatchNorm()


def inputs():
    generator = np.random.default_rng(893)
    import e3nn_jax

    values = e3nn_jax.IrrepsArray("3x0e+1x1o", generator.normal(size=(4, 6)).astype(np.float32))
    return (values,), {"use_running_average": False}
