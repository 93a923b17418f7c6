"""The attention classifier over a BiLSTM of flax's sst2 example, with both dropouts on."""

import numpy as np

CASE = {"rngs": {"dropout": 9}}


def linen():
    import models

    return models.TextClassifier(
        embedding_size=10,
        hidden_size=14,
        vocab_size=37,
        output_size=3,
        dropout_rate=0.2,
        word_dropout_rate=0.1,
        unk_idx=1,
    )


def inputs():
    generator = np.random.default_rng(16)
    tokens = generator.integers(2, 37, (4, 9)).astype(np.int32)
    lengths = np.array([9, 4, 7, 5], np.int32)
    return (tokens, lengths), {"deterministic": False}
