"""The S5 state-space layer."""

import numpy as np

CASE = {}


def linen():
    from long_range_models.s5 import S5Layer

    return S5Layer(feature_dim=5, state_dim=8)


def inputs():
    generator = np.random.default_rng(12)
    return (generator.normal(size=(2, 9, 5)).astype(np.float32),)
