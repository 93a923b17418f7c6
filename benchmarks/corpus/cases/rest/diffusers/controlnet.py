"""The ControlNet on noisy latents, a text encoding and a conditioning image."""

import numpy as np

CASE = {}


def linen():
    from diffusers import FlaxControlNetModel

    return FlaxControlNetModel(
        sample_size=8,
        block_out_channels=(32, 64),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        cross_attention_dim=20,
        attention_head_dim=4,
        layers_per_block=1,
        conditioning_embedding_out_channels=(6, 10, 12, 14),
    )


def inputs():
    import jax.numpy as jnp

    generator = np.random.default_rng(120)
    latents = generator.normal(size=(2, 4, 8, 8)).astype(np.float32)
    steps = jnp.array([3, 470], jnp.int32)
    text = generator.normal(size=(2, 7, 20)).astype(np.float32)
    image = generator.random((2, 3, 64, 64), np.float32)
    return latents, steps, text, image
