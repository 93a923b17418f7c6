"""The encoder-decoder transformer of flax's wmt example, with dropout on and padded sentences."""

import numpy as np

CASE = {"rngs": {"dropout": 7}}


def linen():
    import models

    return models.Transformer(
        models.TransformerConfig(
            vocab_size=37,
            output_vocab_size=41,
            emb_dim=24,
            num_heads=3,
            num_layers=2,
            qkv_dim=12,
            mlp_dim=40,
            max_len=20,
        )
    )


def inputs():
    generator = np.random.default_rng(11)
    source = generator.integers(1, 37, (2, 9)).astype(np.int32)
    target = generator.integers(1, 41, (2, 7)).astype(np.int32)
    source[0, 6:] = 0
    target[1, 5:] = 0
    return source, target
