"""The GPT-Neo language model, one global and one local layer; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxGPTNeoForCausalLM, GPTNeoConfig

    config = GPTNeoConfig(
        vocab_size=61,
        hidden_size=24,
        num_layers=2,
        attention_types=[[["global", "local"], 1]],
        num_heads=4,
        intermediate_size=40,
        max_position_embeddings=32,
        window_size=4,
        embed_dropout=0.1,
        attention_dropout=0.1,
        resid_dropout=0.1,
    )
    return FlaxGPTNeoForCausalLM.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(41)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    return (tokens, mask, positions), {"deterministic": False}
