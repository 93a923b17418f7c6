"""The conditional velocity field in training; dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    from ott.neural.networks.velocity_field import VelocityField

    return VelocityField(
        hidden_dims=(8, 9), output_dims=(7, 3), condition_dims=(6,), dropout_rate=0.1
    )


def inputs():
    generator = np.random.default_rng(883)
    time = generator.random((4, 1), np.float32)
    point = generator.normal(size=(4, 3)).astype(np.float32)
    condition = generator.normal(size=(4, 5)).astype(np.float32)
    return time, point, condition
