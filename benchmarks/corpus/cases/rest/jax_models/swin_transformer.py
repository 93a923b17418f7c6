"""The Swin transformer in training, with dropped paths."""

import numpy as np

CASE = {"rngs": {"dropout": 1, "drop_path": 2}}


def linen():
    from jax_models.models.swin_transformer import SwinTransformer

    return SwinTransformer(
        patch_size=4, emb_dim=16, depths=(1, 2), num_heads=(2, 4), window_size=4, num_classes=7
    )


def inputs():
    generator = np.random.default_rng(862)
    return (generator.normal(size=(2, 32, 32, 3)).astype(np.float32),), {"deterministic": False}
