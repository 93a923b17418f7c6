"""The diffusion UNet with attention to a text encoding."""

import numpy as np

CASE = {}


def linen():
    from flaxdiff.models.simple_unet import Unet

    return Unet(
        output_channels=3,
        emb_features=16,
        feature_depths=[16, 32],
        attention_configs=[None, {"heads": 2}],
        num_res_blocks=1,
        num_middle_res_blocks=1,
        norm_groups=4,
    )


def inputs():
    generator = np.random.default_rng(330)
    image = generator.normal(size=(2, 16, 16, 3)).astype(np.float32)
    step = generator.random((2,), np.float32)
    text = generator.normal(size=(2, 5, 20)).astype(np.float32)
    return image, step, text
