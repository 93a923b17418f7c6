"""The Whisper speech model; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxWhisperForConditionalGeneration, WhisperConfig

    config = WhisperConfig(
        vocab_size=61,
        d_model=24,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=3,
        encoder_ffn_dim=40,
        decoder_ffn_dim=36,
        pad_token_id=1,
        num_mel_bins=8,
        max_source_positions=14,
        max_target_positions=32,
        decoder_start_token_id=2,
        eos_token_id=3,
        bos_token_id=3,
        dropout=0.1,
    )
    return FlaxWhisperForConditionalGeneration.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(57)
    sound = generator.normal(size=(2, 8, 28)).astype(np.float32)
    target = generator.integers(5, 61, (2, 7)).astype(np.int32)
    mask = np.ones((2, 7), np.int32)
    mask[0, 5:] = 0
    positions = np.broadcast_to(np.arange(7, dtype=np.int32), (2, 7))
    return (sound, target, mask, positions), {"deterministic": False}
