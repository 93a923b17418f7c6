"""The ResNet backbone in training, updating its statistics."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxResNetModel, ResNetConfig

    config = ResNetConfig(
        embedding_size=8,
        hidden_sizes=[12, 20],
        depths=[1, 2],
    )
    return FlaxResNetModel.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(63)
    images = generator.normal(size=(4, 36, 36, 3)).astype(np.float32)
    return (images,), {"deterministic": False}
