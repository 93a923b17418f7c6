"""The GPT-2 language model with its tied head; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxGPT2LMHeadModel, GPT2Config

    config = GPT2Config(
        vocab_size=61,
        n_embd=24,
        n_layer=2,
        n_head=4,
        n_positions=32,
        n_inner=40,
    )
    return FlaxGPT2LMHeadModel.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(40)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    return (tokens, mask, positions), {"deterministic": False}
