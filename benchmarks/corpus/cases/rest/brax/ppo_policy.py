"""The policy network of brax's PPO agent, as its factory builds it."""

import numpy as np

CASE = {}


def linen():
    from brax.training.networks import MLP
    from flax import linen as nn

    return MLP(layer_sizes=[32, 32, 32, 32, 4], activation=nn.swish)


def inputs():
    generator = np.random.default_rng(565)
    return (generator.normal(size=(3, 5)).astype(np.float32),)
