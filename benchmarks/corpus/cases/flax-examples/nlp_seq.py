"""The sequence tagger of flax's nlp_seq example, in training with learned positions."""

import numpy as np

CASE = {"rngs": {"dropout": 3}}


def linen():
    import models
    from flax import linen as nn

    return models.Transformer(
        models.TransformerConfig(
            vocab_size=37,
            output_vocab_size=11,
            emb_dim=24,
            num_heads=3,
            num_layers=2,
            qkv_dim=12,
            mlp_dim=40,
            max_len=20,
            posemb_init=nn.initializers.normal(stddev=0.02),
        )
    )


def inputs():
    generator = np.random.default_rng(13)
    tokens = generator.integers(0, 37, (2, 9)).astype(np.int32)
    return (), {"inputs": tokens, "train": True}
