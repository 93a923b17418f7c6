"""VGG-16 without its head, returning every activation."""

import numpy as np

CASE = {}


def linen():
    import flaxmodels

    return flaxmodels.VGG16(output="activations", pretrained=None, include_head=False)


def inputs():
    generator = np.random.default_rng(548)
    return (generator.random((2, 32, 32, 3), np.float32),), {"train": False}
