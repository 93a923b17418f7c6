"""The DINOv2 encoder with dropout and dropped paths."""

import numpy as np

CASE = {"rngs": {"dropout": 1, "droppath": 2}}


def linen():
    import jax.numpy as jnp
    from transformers import Dinov2Config, FlaxDinov2Model

    config = Dinov2Config(
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        image_size=24,
        patch_size=6,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        drop_path_rate=0.3,
        mlp_ratio=2,
    )
    return FlaxDinov2Model.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(62)
    images = generator.normal(size=(2, 24, 24, 3)).astype(np.float32)
    return (images,), {"deterministic": False}
