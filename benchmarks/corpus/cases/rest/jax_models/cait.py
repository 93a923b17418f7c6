"""The class-attention image transformer; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1, "drop_path": 2}}


def linen():
    from jax_models.models.cait import CaiT

    return CaiT(
        patch_size=8,
        embed_dim=12,
        depth=2,
        num_heads=3,
        drop=0.1,
        depth_token_only=1,
        num_classes=7,
    )


def inputs():
    generator = np.random.default_rng(529)
    return (generator.normal(size=(2, 32, 32, 3)).astype(np.float32),), {"deterministic": False}
