"""A policy with a learned standard deviation."""

import numpy as np

CASE = {}


def linen():
    import jax
    from brax.training.networks import PolicyModuleWithStd

    return PolicyModuleWithStd(
        param_size=4,
        hidden_layer_sizes=(8, 6),
        activation=jax.nn.relu,
        kernel_init=jax.nn.initializers.lecun_uniform(),
        layer_norm=True,
        noise_std_type="scalar",
        init_noise_std=1.0,
    )


def inputs():
    generator = np.random.default_rng(103)
    return (generator.normal(size=(3, 5)).astype(np.float32),)
