"""The LongT5 encoder-decoder with local attention; dropout on."""

import numpy as np

from benchmarks.corpus.shims import restore_clip_names

restore_clip_names()

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxLongT5ForConditionalGeneration, LongT5Config

    config = LongT5Config(
        vocab_size=61,
        d_model=24,
        d_kv=5,
        d_ff=40,
        num_layers=2,
        num_heads=4,
        local_radius=3,
    )
    return FlaxLongT5ForConditionalGeneration.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(41)
    source = generator.integers(5, 61, (2, 9)).astype(np.int32)
    target = generator.integers(5, 61, (2, 7)).astype(np.int32)
    source_mask = np.ones((2, 9), np.int32)
    source_mask[1, 6:] = 0
    target_mask = np.ones((2, 7), np.int32)
    target_mask[0, 5:] = 0
    arguments = {
        "input_ids": source,
        "attention_mask": source_mask,
        "decoder_input_ids": target,
        "decoder_attention_mask": target_mask,
        "deterministic": False,
    }
    return (), arguments
