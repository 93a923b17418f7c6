"""The DistilBERT encoder; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import DistilBertConfig, FlaxDistilBertModel

    config = DistilBertConfig(
        vocab_size=61,
        dim=24,
        n_layers=2,
        n_heads=4,
        hidden_dim=40,
        max_position_embeddings=32,
    )
    return FlaxDistilBertModel.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(33)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    return (tokens, mask), {"deterministic": False}
