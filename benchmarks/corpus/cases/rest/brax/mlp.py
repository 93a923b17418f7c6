"""The plain multilayer perceptron, with normalized layers."""

import numpy as np

CASE = {}


def linen():
    from brax.training.networks import MLP

    return MLP(layer_sizes=(8, 5), layer_norm=True)


def inputs():
    generator = np.random.default_rng(805)
    return (generator.normal(size=(3, 6)).astype(np.float32),)
