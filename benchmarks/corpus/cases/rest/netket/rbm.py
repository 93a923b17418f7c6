"""The restricted Boltzmann machine."""

import numpy as np

CASE = {}


def linen():
    from netket.models import RBM

    return RBM(alpha=2)


def inputs():
    generator = np.random.default_rng(22)
    return (generator.choice([-1.0, 1.0], (3, 6)),)
