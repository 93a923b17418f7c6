"""The ResNet of flax's imagenet example: class-valued fields, two stages, stored statistics."""

import numpy as np

# Its normalization averages over a device axis in training, which no single call has.
CASE = {"collections": ("batch_stats",)}


def linen():
    import models

    return models.ResNet(
        stage_sizes=[1, 2], block_cls=models.ResNetBlock, num_classes=7, num_filters=6
    )


def inputs():
    images = np.random.default_rng(19).normal(size=(4, 36, 36, 3)).astype(np.float32)
    return (images,), {"train": False}
