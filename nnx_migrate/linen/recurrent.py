"""Recurrent cells and loops: the public names of ``flax.linen.recurrent``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from flax.core import FrozenDict
from flax.core.scope import CollectionFilter, PRNGSequenceFilter
from flax.typing import Array, Dtype, Initializer, InOutScanAxis, PrecisionLike, PRNGKey
from jax import random
from jax.nn import sigmoid
from jax.numpy import tanh

from nnx_migrate.linen import initializers, transforms
from nnx_migrate.linen.layers.cell_base import RNNCellBase
from nnx_migrate.linen.layers.conv import Conv
from nnx_migrate.linen.layers.conv_lstm import ConvLSTMCell
from nnx_migrate.linen.layers.dense import Dense
from nnx_migrate.linen.layers.gated_cells import GRUCell, MGUCell, SimpleCell
from nnx_migrate.linen.layers.lstm import DenseParams, LSTMCell, OptimizedLSTMCell
from nnx_migrate.linen.layers.operations import default_kernel_init
from nnx_migrate.linen.layers.rnn import RNN, Bidirectional, RNNBase
from nnx_migrate.linen.module import Module, compact, nowrap
from nnx_migrate.numerics.dtypes import promote_dtype
from nnx_migrate.numerics.sequences import concatenate_features, flip_sequences, last_carry

__all__ = [
    "RNN",
    "A",
    "Any",
    "Array",
    "Bidirectional",
    "Callable",
    "Carry",
    "CarryHistory",
    "CollectionFilter",
    "Conv",
    "ConvLSTMCell",
    "Dense",
    "DenseParams",
    "Dtype",
    "FrozenDict",
    "GRUCell",
    "InOutScanAxis",
    "Initializer",
    "LSTMCell",
    "MGUCell",
    "Mapping",
    "Module",
    "OptimizedLSTMCell",
    "Output",
    "PRNGKey",
    "PRNGSequenceFilter",
    "PrecisionLike",
    "Protocol",
    "RNNBase",
    "RNNCellBase",
    "Sequence",
    "SimpleCell",
    "TypeVar",
    "compact",
    "default_kernel_init",
    "flip_sequences",
    "initializers",
    "jax",
    "jnp",
    "logging",
    "nowrap",
    "np",
    "partial",
    "promote_dtype",
    "random",
    "sigmoid",
    "tanh",
    "transforms",
]

_concatenate = concatenate_features
_select_last_carry = last_carry
A = TypeVar("A")
Carry = Any
CarryHistory = Any
Output = Any
