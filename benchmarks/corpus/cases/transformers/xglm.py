"""The XGLM language model; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxXGLMForCausalLM, XGLMConfig

    config = XGLMConfig(
        vocab_size=61,
        d_model=24,
        ffn_dim=40,
        num_layers=2,
        attention_heads=4,
        max_position_embeddings=32,
    )
    return FlaxXGLMForCausalLM.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(48)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    return (tokens, mask, positions), {"deterministic": False}
