"""The vision transformer with pooler; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxViTModel, ViTConfig

    config = ViTConfig(
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        image_size=24,
        patch_size=6,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    return FlaxViTModel.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(60)
    images = generator.normal(size=(2, 24, 24, 3)).astype(np.float32)
    return (images,), {"deterministic": False}
