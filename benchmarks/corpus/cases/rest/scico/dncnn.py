"""The denoising network in training, updating its statistics."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    from scico.flax import DnCNNNet

    return DnCNNNet(depth=3, channels=2, num_filters=6)


def inputs():
    generator = np.random.default_rng(108)
    return (generator.normal(size=(3, 16, 16, 2)).astype(np.float32),), {"train": True}
