"""An equivariant linear layer over degrees 0 and 1."""

import numpy as np

CASE = {}


def linen():
    import e3x

    return e3x.nn.Dense(features=7)


def inputs():
    generator = np.random.default_rng(846)
    return (generator.normal(size=(3, 2, 4, 5)).astype(np.float32),)
