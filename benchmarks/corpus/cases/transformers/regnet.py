"""The RegNet backbone in training, updating its statistics."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxRegNetModel, RegNetConfig

    config = RegNetConfig(
        embedding_size=8,
        hidden_sizes=[12, 20],
        depths=[1, 2],
        groups_width=4,
    )
    return FlaxRegNetModel.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(64)
    images = generator.normal(size=(4, 36, 36, 3)).astype(np.float32)
    return (images,), {"deterministic": False}
