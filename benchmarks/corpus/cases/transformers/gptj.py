"""The GPT-J language model with partial rotary positions; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxGPTJForCausalLM, GPTJConfig

    config = GPTJConfig(
        vocab_size=61,
        n_embd=24,
        n_layer=2,
        n_head=4,
        n_positions=32,
        n_inner=40,
        rotary_dim=4,
        embd_pdrop=0.1,
        attn_pdrop=0.1,
        resid_pdrop=0.1,
    )
    return FlaxGPTJForCausalLM.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(42)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    return (tokens, mask, positions), {"deterministic": False}
