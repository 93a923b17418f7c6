"""The example network whose dense layers contract in 8 bits, through a class-valued field."""

import numpy as np

from benchmarks.corpus.shims import stand_in

stand_in("tensorflow_datasets")  # only the example's data loading needs it

CASE = {"collections": ("batch_stats",)}


def linen():
    import functools

    from aqt.jax.v2 import config
    from aqt.jax.v2.examples.cnn.cnn_model import CNN
    from aqt.jax.v2.flax.aqt_flax import AqtDotGeneral

    quantized = config.fully_quantized(fwd_bits=8, bwd_bits=8, use_stochastic_rounding=False)
    return CNN(
        bn_use_stats=True,
        dot_general_cls=functools.partial(AqtDotGeneral, quantized, prng_name=None),
    )


def inputs():
    generator = np.random.default_rng(71)
    return (generator.normal(size=(3, 12, 12, 2)).astype(np.float32),)
