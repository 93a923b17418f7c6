"""Linen's automatic submodule names, and the width of a layer's output."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_migrate.nn.layers import (
    attention,
    linear,
    normalization,
    recurrent,
    stochastic,
)

# Only classes that Linen calls differently.
_NATIVE_NAMES: dict[type, str] = {nnx.Linear: "Dense", nnx.LinearGeneral: "DenseGeneral"}

_KEEPS_FEATURES = (
    nnx.LayerNorm,
    nnx.RMSNorm,
    nnx.InstanceNorm,
    nnx.GroupNorm,
    nnx.BatchNorm,
    nnx.Dropout,
    normalization.LayerNorm,
    normalization.RMSNorm,
    normalization.InstanceNorm,
    normalization.GroupNorm,
    normalization.BatchNorm,
    stochastic.Dropout,
)


def linen_name(layer: Any) -> str:
    """The Linen class name of a factory, a class, a ``functools.partial`` of one, or an instance.

    A string is taken as the name itself.

    Raises:
      TypeError: ``layer`` is none of these.
    """
    if isinstance(layer, str):
        return layer
    if isinstance(layer, functools.partial):
        return linen_name(layer.func)
    name = getattr(layer, "linen_name", None)
    if isinstance(name, str):
        return name
    if isinstance(layer, nnx.Module):
        layer = type(layer)
    if isinstance(layer, type) and issubclass(layer, nnx.Module):
        return _NATIVE_NAMES.get(layer, layer.__name__)
    raise TypeError(
        "expected a layer factory, an nnx.Module class or instance, a functools.partial of one, or "
        f"a Linen class name, found {layer!r}"
    )


class LinenNames:
    """Linen's name counter: one per parent module, asked in construction order.

    ``names("Dense")`` gives ``"Dense_0"``, then ``"Dense_1"``; other classes count on their own.
    """

    def __init__(self) -> None:
        """Start all counters at 0."""
        self._used: Counter[str] = Counter()

    def __call__(self, layer: Any) -> str:
        """The next name for ``layer`` (see :func:`linen_name`)."""
        name = linen_name(layer)
        index = self._used[name]
        self._used[name] += 1
        return f"{name}_{index}"


def built_for(module: nnx.Module, **facts: bool) -> None:
    """Check that a call has what the module was built for, where Linen's names depend on it.

    ``facts`` are constructor arguments, kept in attributes of their name after an underscore.

    Raises:
      ValueError: one differs. Linen would give some submodules the parameters of others, or fail.
    """
    for name, holds in facts.items():
        built = getattr(module, f"_{name}")
        if built != holds:
            raise ValueError(
                f"this call needs a {type(module).__name__} built with {name}={holds}, it was built"
                f" with {name}={built}: Linen would number its submodules otherwise"
            )


def out_features(layer: Any, in_features: int | None) -> int:
    """Size of the last axis that ``layer`` makes of an input whose last axis is ``in_features``.

    ``in_features`` may be None where no class that may stand in the layer's place needs it.

    Raises:
      TypeError: the layer is not built in and has no integer ``out_features`` attribute.
    """
    if in_features is None:
        return _own_width(layer)
    if isinstance(layer, _KEEPS_FEATURES):
        return in_features
    if isinstance(layer, (nnx.Embed, linear.ConvLocal)):
        return int(layer.features)
    if isinstance(layer, (linear.Einsum, nnx.Einsum)):
        return _einsum_features(layer, in_features)
    if isinstance(layer, attention.MultiHeadDotProductAttention):
        return layer.out_features
    if isinstance(layer, recurrent.RNN):
        return out_features(layer.cell, in_features)
    if isinstance(layer, recurrent.Bidirectional):
        return _bidirectional_features(layer, in_features)
    if isinstance(layer, recurrent.Sequential):
        for step in layer.layers:
            in_features = out_features(step, in_features)
        return in_features
    if type(layer).__module__.startswith("flax.nnx.") and not hasattr(layer, "out_features"):
        return _shown_width(layer, in_features)
    return _own_width(layer)


def _shown_width(layer: nnx.Module, in_features: int) -> int:
    """What a call of a native layer shows."""
    graphdef, state = nnx.split(layer)
    row = jax.ShapeDtypeStruct((1, in_features), jnp.float32)
    return int(jax.eval_shape(lambda x: nnx.merge(graphdef, state)(x), row).shape[-1])


def _own_width(layer: Any) -> int:
    size = getattr(layer, "out_features", None)
    if isinstance(size, tuple):
        size = size[-1]
    if isinstance(size, int):
        return size
    raise TypeError(
        f"the output width of {type(layer).__name__} is not known: "
        "give the class an integer attribute or property 'out_features'"
    )


def _einsum_features(layer: Any, in_features: int) -> int:
    if layer.einsum_str is None:
        raise TypeError("the output width of an Einsum without einsum_str is not known")
    shape = layer.shape if isinstance(layer, linear.Einsum) else layer.kernel_shape
    inputs, kernel, result = linear.einsum_parts(layer.einsum_str)
    last = result[-1:]
    if last in kernel and last != ".":
        return int(shape[kernel.index(last)])
    if last == inputs[-1:]:
        return in_features
    raise TypeError(f"the last axis of '{layer.einsum_str}' is not the input's last axis")


def _bidirectional_features(layer: Any, in_features: int) -> int:
    if layer.merge_fn is not recurrent.concatenate_features:
        raise TypeError("the output width of a Bidirectional with a merge_fn is not known")
    forward = out_features(layer.forward_rnn, in_features)
    return forward + out_features(layer.backward_rnn, in_features)
