"""The Mistral language model with a sliding window."""

import numpy as np

CASE = {}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxMistralForCausalLM, MistralConfig

    config = MistralConfig(
        vocab_size=61,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        max_position_embeddings=32,
        num_key_value_heads=2,
        sliding_window=4,
    )
    return FlaxMistralForCausalLM.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(44)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    return tokens, mask, positions
