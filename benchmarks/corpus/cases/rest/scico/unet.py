"""The UNet in training, updating its statistics."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    from scico.flax import UNet

    return UNet(depth=2, channels=2, num_filters=6)


def inputs():
    generator = np.random.default_rng(23)
    return (generator.normal(size=(3, 16, 16, 2)).astype(np.float32),), {"train": True}
