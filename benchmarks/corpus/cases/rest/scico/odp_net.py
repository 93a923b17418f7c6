"""The unrolled optimization network around a linear operator, in training."""

import numpy as np

CASE = {"collections": ("batch_stats",)}


def linen():
    from scico.flax.inverse import ODPNet
    from scico.linop import Identity

    return ODPNet(
        operator=Identity((3, 8, 8, 2)), depth=2, channels=2, num_filters=6, block_depth=2
    )


def inputs():
    generator = np.random.default_rng(324)
    return (generator.normal(size=(3, 8, 8, 2)).astype(np.float32),), {"train": True}
