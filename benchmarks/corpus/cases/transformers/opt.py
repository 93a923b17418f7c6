"""The OPT language model with projected embeddings; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxOPTForCausalLM, OPTConfig

    config = OPTConfig(
        vocab_size=61,
        hidden_size=24,
        num_hidden_layers=2,
        ffn_dim=40,
        num_attention_heads=4,
        max_position_embeddings=32,
        word_embed_proj_dim=18,
    )
    return FlaxOPTForCausalLM.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(46)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    return (tokens, mask, positions), {"deterministic": False}
