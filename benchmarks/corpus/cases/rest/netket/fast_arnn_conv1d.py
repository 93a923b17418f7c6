"""The autoregressive network of cached convolutions."""

import numpy as np

CASE = {}


def linen():
    import netket

    hilbert = netket.hilbert.Spin(0.5, 6)
    return netket.models.FastARNNConv1D(hilbert=hilbert, layers=2, features=4, kernel_size=2)


def inputs():
    generator = np.random.default_rng(342)
    return (generator.choice([-1.0, 1.0], (3, 6)),)
