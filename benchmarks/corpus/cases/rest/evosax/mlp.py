"""The policy with a categorical output, sampling from a key argument."""

import numpy as np

CASE = {}


def linen():
    from evosax.networks.mlp import MLP

    return MLP(
        num_hidden_units=9,
        num_hidden_layers=2,
        num_output_units=3,
        hidden_activation="tanh",
        output_activation="gaussian",
    )


def inputs():
    generator = np.random.default_rng(41)
    return generator.normal(size=(2, 4)).astype(np.float32), np.array([3, 5], np.uint32)
