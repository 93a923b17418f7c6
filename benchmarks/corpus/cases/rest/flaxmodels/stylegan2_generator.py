"""The StyleGAN2 generator, noise and the moving average of w on."""

import numpy as np

from benchmarks.corpus.shims import restore_reshape_names

restore_reshape_names()

CASE = {"collections": ("moving_stats", "noise_consts")}


def linen():
    from flaxmodels.stylegan2.generator import Generator

    return Generator(
        resolution=16, fmap_base=64, fmap_max=12, z_dim=10, w_dim=14, mapping_layer_features=14
    )


def inputs():
    generator = np.random.default_rng(110)
    return (generator.normal(size=(2, 10)).astype(np.float32),), {
        "train": True,
        "rng": np.array([3, 5], np.uint32),
    }
