"""The transformer's multilayer perceptron."""

import numpy as np

from benchmarks.corpus.shims import restore_key_array

restore_key_array()

CASE = {}


def linen():
    from flaim.layers import TransformerMLP

    return TransformerMLP()


def inputs():
    generator = np.random.default_rng(201)
    return (generator.normal(size=(2, 4, 6)).astype(np.float32),)
