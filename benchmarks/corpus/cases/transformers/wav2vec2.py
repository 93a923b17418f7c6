"""The wav2vec 2.0 encoder with masked time steps; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1, "gumbel": 2}}


def linen():
    import jax.numpy as jnp
    from transformers import FlaxWav2Vec2Model, Wav2Vec2Config

    config = Wav2Vec2Config(
        vocab_size=32,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        conv_dim=(12, 16),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_feat_extract_layers=2,
        do_stable_layer_norm=True,
        feat_extract_norm="layer",
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
    )
    return FlaxWav2Vec2Model.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(66)
    sound = generator.normal(size=(2, 400)).astype(np.float32)
    mask = np.ones((2, 400), np.int32)
    mask[1, 300:] = 0
    hidden = generator.random((2, 39)) < 0.2
    return (sound, mask, hidden), {"deterministic": False}
