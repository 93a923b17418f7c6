"""ResNet-18 in training, updating its statistics."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    import flaxmodels

    return flaxmodels.ResNet18(output="logits", pretrained=None, num_classes=7)


def inputs():
    generator = np.random.default_rng(883)
    return (generator.normal(size=(3, 33, 33, 3)).astype(np.float32),), {"train": True}
