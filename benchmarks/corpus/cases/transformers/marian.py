"""The Marian translation model with its tied head; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxMarianMTModel, MarianConfig

    config = MarianConfig(
        vocab_size=61,
        d_model=24,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=3,
        encoder_ffn_dim=40,
        decoder_ffn_dim=36,
        max_position_embeddings=32,
        pad_token_id=1,
        decoder_start_token_id=1,
    )
    return FlaxMarianMTModel.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(56)
    source = generator.integers(5, 61, (2, 9)).astype(np.int32)
    target = generator.integers(5, 61, (2, 7)).astype(np.int32)
    source_mask = np.ones((2, 9), np.int32)
    source_mask[1, 6:] = 0
    target_mask = np.ones((2, 7), np.int32)
    target_mask[0, 5:] = 0
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    target_positions = np.broadcast_to(np.arange(7, dtype=np.int32), (2, 7))
    arguments = (source, source_mask, target, target_mask, positions, target_positions)
    return arguments, {"deterministic": False}
