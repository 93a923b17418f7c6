"""The multilayer perceptron block in training; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    from cellflow.networks import MLPBlock

    return MLPBlock(dims=(8, 5), dropout_rate=0.1)


def inputs():
    generator = np.random.default_rng(853)
    return (generator.normal(size=(4, 3)).astype(np.float32),), {"training": True}
