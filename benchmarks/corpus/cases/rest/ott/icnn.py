"""The input convex network."""

import numpy as np

CASE = {}


def linen():
    from ott.neural.networks.icnn import ICNN

    return ICNN(dim_data=3, dim_hidden=(8, 6))


def inputs():
    generator = np.random.default_rng(814)
    return (generator.normal(size=(4, 3)).astype(np.float32),)
