"""The convolutional classifier."""

import numpy as np

CASE = {}


def linen():
    from evosax.networks.cnn import CNN

    return CNN(num_output_units=7)


def inputs():
    generator = np.random.default_rng(31)
    return generator.normal(size=(2, 8, 8, 1)).astype(np.float32), np.array([3, 5], np.uint32)
