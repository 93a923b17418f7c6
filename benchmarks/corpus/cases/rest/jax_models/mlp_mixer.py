"""The MLP-Mixer classifier; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    from jax_models.models.mlp_mixer import MLPMixer

    return MLPMixer(
        patch_size=8,
        num_mixers_layers=2,
        hidden_size=14,
        tokens_dim=9,
        channels_dim=11,
        attach_head=True,
        num_classes=7,
    )


def inputs():
    generator = np.random.default_rng(88)
    return (generator.normal(size=(2, 32, 32, 3)).astype(np.float32),), {"deterministic": False}
