"""The potential of optimal transport as a multilayer perceptron."""

import numpy as np

CASE = {}


def linen():
    from ott.neural.networks.potentials import PotentialMLP

    return PotentialMLP(dim_hidden=(8, 6))


def inputs():
    generator = np.random.default_rng(793)
    return (generator.normal(size=(4, 3)).astype(np.float32),)
