"""The conditional UNet on noisy latents and a text encoding; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    from diffusers import FlaxUNet2DConditionModel

    return FlaxUNet2DConditionModel(
        sample_size=8,
        block_out_channels=(32, 64),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=20,
        attention_head_dim=4,
        layers_per_block=1,
        dropout=0.1,
    )


def inputs():
    import jax.numpy as jnp

    generator = np.random.default_rng(680)
    latents = generator.normal(size=(2, 4, 8, 8)).astype(np.float32)
    steps = jnp.array([3, 470], jnp.int32)
    text = generator.normal(size=(2, 7, 20)).astype(np.float32)
    return (latents, steps, text), {"train": True}
