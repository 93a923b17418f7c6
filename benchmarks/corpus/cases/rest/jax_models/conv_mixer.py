"""The ConvMixer classifier in training, updating its statistics."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    from jax_models.models.conv_mixer import ConvMixer

    return ConvMixer(features=10, patch_size=4, num_mixer_layers=2, filter_size=3, num_classes=7)


def inputs():
    generator = np.random.default_rng(197)
    return (generator.normal(size=(2, 32, 32, 3)).astype(np.float32),), {"deterministic": False}
