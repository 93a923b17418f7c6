"""The ResNet classifier in training, with stochastic depth."""

import numpy as np

from benchmarks.corpus.shims import restore_key_array

restore_key_array()

CASE = {"rngs": {"stochastic_depth": 1}, "collections": ("batch_stats",)}


def linen():
    from flaim.models.resnet import ResNet

    return ResNet(depths=(1, 1, 1, 1))


def inputs():
    generator = np.random.default_rng(228)
    return (generator.normal(size=(2, 32, 32, 3)).astype(np.float32),), {"training": True}
