"""The actor-critic network of flax's ppo example, on stacked frames."""

import numpy as np

CASE = {}


def linen():
    import models

    return models.ActorCritic(num_outputs=5)


def inputs():
    frames = np.random.default_rng(14).integers(0, 256, (2, 84, 84, 3))
    return (frames.astype(np.float32),)
