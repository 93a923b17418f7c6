"""The neural density matrix."""

import numpy as np

CASE = {}


def linen():
    from netket.models import NDM

    return NDM(alpha=2)


def inputs():
    generator = np.random.default_rng(20)
    return (generator.choice([-1.0, 1.0], (3, 12)),)
