"""The implicit quantile network, sampling from a key argument."""

import numpy as np

from benchmarks.corpus.shims import restore_xla_names

restore_xla_names()

CASE = {}


def linen():
    import jax
    from rejax.networks import ImplicitQuantileNetwork

    return ImplicitQuantileNetwork(hidden_layer_sizes=(8, 6), activation=jax.nn.relu, action_dim=3)


def inputs():
    generator = np.random.default_rng(412)
    return generator.normal(size=5).astype(np.float32), np.array([3, 5], np.uint32)
