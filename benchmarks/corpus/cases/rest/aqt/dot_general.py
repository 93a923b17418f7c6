"""The quantized contraction: 8 bits forward, stochastic rounding backward."""

import numpy as np

CASE = {"rngs": {"params": 1}}


def linen():
    from aqt.jax.v2 import config
    from aqt.jax.v2.flax.aqt_flax import AqtDotGeneral

    return AqtDotGeneral(config.fully_quantized(fwd_bits=8, bwd_bits=8))


def inputs():
    import jax.numpy as jnp

    generator = np.random.default_rng(532)
    left = generator.normal(size=(3, 8)).astype(np.float32)
    right = generator.normal(size=(8, 5)).astype(np.float32)
    return jnp.asarray(left), jnp.asarray(right), (((1,), (0,)), ((), ())), None
