"""The attention encoder of the evolution transformer; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    from evosax.learned_eo.evotf_tools.attention import AttentionEncoder

    return AttentionEncoder(
        embed_dim=8, num_heads=2, num_layers=2, dropout_prob=0.1, input_dropout_prob=0.1
    )


def inputs():
    generator = np.random.default_rng(528)
    return (generator.normal(size=(2, 5, 8)).astype(np.float32),)
