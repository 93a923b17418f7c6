"""The variational autoencoder, sampling its posterior; dropout on."""

import numpy as np

CASE = {"rngs": {"gaussian": 1, "dropout": 2}}


def linen():
    from diffusers import FlaxAutoencoderKL

    return FlaxAutoencoderKL(
        block_out_channels=(16, 24),
        down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"),
        up_block_types=("UpDecoderBlock2D", "UpDecoderBlock2D"),
        latent_channels=5,
        sample_size=12,
        norm_num_groups=4,
    )


def inputs():
    generator = np.random.default_rng(511)
    return (generator.normal(size=(2, 3, 12, 12)).astype(np.float32),), {
        "sample_posterior": True,
        "deterministic": False,
    }
