"""The BigBird encoder with full attention; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import BigBirdConfig, FlaxBigBirdModel

    config = BigBirdConfig(
        vocab_size=61,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        max_position_embeddings=32,
        attention_type="original_full",
    )
    return FlaxBigBirdModel.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(34)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    types = np.zeros((2, 9), np.int32)
    types[:, 5:] = 1
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    return (tokens, mask, types, positions, None), {"deterministic": False}
