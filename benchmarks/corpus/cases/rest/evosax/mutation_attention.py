"""The attention of a learned genetic algorithm over mutation rates."""

import numpy as np

CASE = {}


def linen():
    from evosax.learned_eo.lga_tools import MutationAttention

    return MutationAttention(num_att_heads=2, att_hidden_dims=8)


def inputs():
    generator = np.random.default_rng(673)
    rates = generator.random((6, 1), np.float32)
    fitness = generator.normal(size=(6, 3)).astype(np.float32)
    return rates, fitness
