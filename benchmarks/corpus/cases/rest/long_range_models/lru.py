"""The linear recurrent unit."""

import numpy as np

CASE = {}


def linen():
    from long_range_models.lru import LRULayer

    return LRULayer(feature_dim=5, state_dim=7)


def inputs():
    generator = np.random.default_rng(183)
    return (generator.normal(size=(2, 9, 5)).astype(np.float32),)
