"""The Jastrow wave function, complex parameters."""

import numpy as np

CASE = {}


def linen():
    from netket.models import Jastrow

    return Jastrow()


def inputs():
    generator = np.random.default_rng(479)
    return (generator.choice([-1.0, 1.0], (3, 6)),)
