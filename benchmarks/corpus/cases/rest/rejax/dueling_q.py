"""The dueling value network."""

import numpy as np

from benchmarks.corpus.shims import restore_xla_names

restore_xla_names()

CASE = {}


def linen():
    import jax
    from rejax.networks import DuelingQNetwork

    return DuelingQNetwork(hidden_layer_sizes=(8, 6), activation=jax.nn.relu, action_dim=3)


def inputs():
    generator = np.random.default_rng(540)
    return (generator.normal(size=(4, 5)).astype(np.float32),)
