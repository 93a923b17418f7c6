"""Activations, of which one has a parameter: the public names of ``flax.linen.activation``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

from typing import Any, Optional

import jax.numpy as jnp
from flax.typing import Array, Dtype
from jax.nn import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    logsumexp,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softmax,
    softplus,
    standardize,
    swish,
)
from jax.numpy import tanh

from nnx_migrate.linen.layers.dense import Dense
from nnx_migrate.linen.layers.prelu import PReLU
from nnx_migrate.linen.module import Module, compact

__all__ = [
    "Any",
    "Array",
    "Dense",
    "Dtype",
    "Module",
    "Optional",
    "PReLU",
    "celu",
    "compact",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "jnp",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "normalize",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "standardize",
    "swish",
    "tanh",
]

normalize = standardize
