"""The Gaussian policy, sampling from a key argument."""

import numpy as np

from benchmarks.corpus.shims import restore_xla_names

restore_xla_names()

CASE = {}


def linen():
    import jax
    import jax.numpy as jnp
    from rejax.networks import GaussianPolicy

    return GaussianPolicy(
        action_dim=2,
        action_range=(jnp.zeros(2), jnp.ones(2)),
        hidden_layer_sizes=(8, 6),
        activation=jax.nn.relu,
    )


def inputs():
    generator = np.random.default_rng(201)
    return generator.normal(size=(3, 5)).astype(np.float32), np.array([3, 5], np.uint32)
