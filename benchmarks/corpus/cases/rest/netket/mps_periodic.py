"""The periodic matrix product state."""

import numpy as np

CASE = {}


def linen():
    import netket
    from netket.models.tensor_networks import MPSPeriodic

    hilbert = netket.hilbert.Spin(0.5, 6)
    return MPSPeriodic(hilbert=hilbert, bond_dim=3)


def inputs():
    generator = np.random.default_rng(979)
    return (generator.choice([-1.0, 1.0], (3, 6)),)
