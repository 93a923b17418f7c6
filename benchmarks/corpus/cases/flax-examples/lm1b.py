"""The decoder-only language model of flax's lm1b example, on packed sequences, dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 5}}


def linen():
    import models

    return models.TransformerLM(
        models.TransformerConfig(
            vocab_size=37,
            output_vocab_size=37,
            emb_dim=24,
            num_heads=3,
            num_layers=2,
            qkv_dim=12,
            mlp_dim=40,
            max_len=20,
        )
    )


def inputs():
    generator = np.random.default_rng(12)
    tokens = generator.integers(1, 37, (2, 9)).astype(np.int32)
    positions = np.array([[0, 1, 2, 3, 4, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6, 7, 8]], np.int32)
    segments = np.array([[1, 1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 1, 1, 1, 1, 1, 1]], np.int32)
    return tokens, positions, segments
