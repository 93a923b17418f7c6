"""The BLOOM language model with ALiBi; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import BloomConfig, FlaxBloomForCausalLM

    config = BloomConfig(
        vocab_size=61,
        hidden_size=24,
        n_layer=2,
        n_head=4,
        hidden_dropout=0.1,
        attention_dropout=0.1,
    )
    return FlaxBloomForCausalLM.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(47)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    return (tokens, mask), {"deterministic": False}
