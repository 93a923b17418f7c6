"""The spectrally normalized multilayer perceptron, updating its singular vectors."""

import numpy as np

CASE = {"rngs": {"sing_vec": 1}, "collections": ("sing_vec",)}


def linen():
    from brax.training.networks import SNMLP

    return SNMLP(layer_sizes=(8, 5))


def inputs():
    generator = np.random.default_rng(33)
    return (generator.normal(size=(3, 6)).astype(np.float32),)
