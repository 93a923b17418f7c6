"""The residual network with stored statistics."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    from scico.flax import ResNet

    return ResNet(depth=3, channels=2, num_filters=6)


def inputs():
    generator = np.random.default_rng(236)
    return (generator.normal(size=(3, 16, 16, 2)).astype(np.float32),), {"train": False}
