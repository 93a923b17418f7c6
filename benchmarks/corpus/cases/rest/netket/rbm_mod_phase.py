"""A Boltzmann machine for the modulus and one for the phase."""

import numpy as np

CASE = {}


def linen():
    from netket.models import RBMModPhase

    return RBMModPhase(alpha=2)


def inputs():
    generator = np.random.default_rng(64)
    return (generator.choice([-1.0, 1.0], (3, 6)),)
