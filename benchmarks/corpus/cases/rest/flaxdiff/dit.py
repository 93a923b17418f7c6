"""The diffusion transformer with a text encoding."""

import numpy as np

CASE = {}


def linen():
    from flaxdiff.models.simple_dit import SimpleDiT

    return SimpleDiT(output_channels=3, patch_size=4, emb_features=24, num_layers=2, num_heads=4)


def inputs():
    generator = np.random.default_rng(207)
    image = generator.normal(size=(2, 16, 16, 3)).astype(np.float32)
    step = generator.random((2,), np.float32)
    text = generator.normal(size=(2, 5, 20)).astype(np.float32)
    return image, step, text
