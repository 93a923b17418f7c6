"""Two layers of masked self-attention in training; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    from cellflow.networks import SelfAttentionBlock

    return SelfAttentionBlock(
        num_heads=[2, 4], qkv_dim=[8, 12], dropout_rate=0.1, transformer_block=True, layer_norm=True
    )


def inputs():
    generator = np.random.default_rng(33)
    sets = generator.normal(size=(2, 5, 6)).astype(np.float32)
    mask = np.ones((2, 1, 5, 5), np.float32)
    mask[1, :, :, 3:] = 0
    return (sets, mask), {"training": True}
