"""The multilayer perceptron wave function."""

import numpy as np

CASE = {}


def linen():
    from netket.models import MLP

    return MLP(hidden_dims=(8, 5))


def inputs():
    generator = np.random.default_rng(30)
    return (generator.choice([-1.0, 1.0], (3, 6)),)
