"""The network for camera images, which takes a dict of observations."""

import numpy as np

CASE = {}


def linen():
    from brax.training.networks import VisionMLP

    return VisionMLP(layer_sizes=(8, 5))


def inputs():
    generator = np.random.default_rng(567)
    return (
        {
            "pixels/front": generator.normal(size=(2, 18, 18, 3)).astype(np.float32),
            "pixels/side": generator.normal(size=(2, 20, 20, 3)).astype(np.float32),
        },
    )
