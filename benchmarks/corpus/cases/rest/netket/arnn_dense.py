"""The autoregressive network of masked dense layers."""

import numpy as np

CASE = {}


def linen():
    import netket

    hilbert = netket.hilbert.Spin(0.5, 6)
    return netket.models.ARNNDense(hilbert=hilbert, layers=2, features=4)


def inputs():
    generator = np.random.default_rng(754)
    return (generator.choice([-1.0, 1.0], (3, 6)),)
