"""The ConvNeXt classifier with dropped paths."""

import numpy as np

CASE = {"rngs": {"drop_path": 2}}


def linen():
    from jax_models.models.convnext import ConvNeXt

    return ConvNeXt(depths=(1, 1, 2, 1), dims=(8, 12, 16, 20), drop_path=0.2, num_classes=7)


def inputs():
    generator = np.random.default_rng(0)
    return (generator.normal(size=(2, 32, 32, 3)).astype(np.float32),), {"deterministic": False}
