"""The multilayer perceptron that keeps the variance."""

import numpy as np

CASE = {}


def linen():
    import e3nn_jax
    import jax

    return e3nn_jax.flax.MultiLayerPerceptron((8, 9, 4), act=jax.nn.silu)


def inputs():
    generator = np.random.default_rng(169)
    return (generator.normal(size=(3, 5)).astype(np.float32),)
