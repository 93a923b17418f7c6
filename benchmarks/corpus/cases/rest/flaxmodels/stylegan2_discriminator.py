"""The StyleGAN2 discriminator."""

import numpy as np

from benchmarks.corpus.shims import restore_reshape_names

restore_reshape_names()

CASE = {}


def linen():
    from flaxmodels.stylegan2.discriminator import Discriminator

    return Discriminator(resolution=16, fmap_base=64, fmap_max=12)


def inputs():
    generator = np.random.default_rng(543)
    return (generator.normal(size=(4, 16, 16, 3)).astype(np.float32),)
