"""The LSTM encoder-decoder of flax's seq2seq example, feeding its own samples back."""

import numpy as np

CASE = {"rngs": {"lstm": 2}}


def linen():
    import models

    return models.Seq2seq(teacher_force=False, hidden_size=17, vocab_size=13, eos_id=1)


def inputs():
    generator = np.random.default_rng(17)
    query = generator.integers(2, 13, (3, 7))
    query[[0, 1, 2], [4, 6, 5]] = 1
    answer = generator.integers(2, 13, (3, 5))
    one_hot = np.eye(13, dtype=np.float32)
    return one_hot[query], one_hot[answer]
