"""An equivariant layer that couples two linear maps by a tensor product."""

import numpy as np

CASE = {}


def linen():
    import e3x

    return e3x.nn.TensorDense(features=7, max_degree=2)


def inputs():
    generator = np.random.default_rng(611)
    return (generator.normal(size=(3, 2, 4, 5)).astype(np.float32),)
