"""The group convolutional network over the translations of a chain."""

import numpy as np

CASE = {}


def linen():
    import netket

    return netket.models.GCNN(symmetries=netket.graph.Chain(6), layers=2, features=4)


def inputs():
    generator = np.random.default_rng(123)
    return (generator.choice([-1.0, 1.0], (3, 6)),)
