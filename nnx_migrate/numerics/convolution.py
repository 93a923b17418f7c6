"""Padding and dimension numbers of Linen's convolutions (flax 0.12.8, linen/linear.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def per_axis(value: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """One number per spatial axis; None means 1."""
    if value is None or isinstance(value, int):
        return (1 if value is None else value,) * rank
    return tuple(value)


def canonicalize_padding(padding: Any, rank: int) -> Any:
    """``padding`` as ``lax`` takes it: a string as it is, else one pair per spatial axis.

    Args:
      padding: a string, one int for all sides, or a sequence of ``rank`` ints or pairs (tuples).

    Raises:
      ValueError: it is none of these.
    """
    if isinstance(padding, str):
        return padding
    if isinstance(padding, int):
        return [(padding, padding)] * rank
    if isinstance(padding, Sequence) and len(padding) == rank:
        pairs = [(one, one) if isinstance(one, int) else one for one in padding]
        if all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            return pairs
    raise ValueError(
        f"Invalid padding format: expected padding to be a string, an int, or {rank} ints or "
        f"pairs of ints, found {padding}"
    )


def channels_last(shape: Sequence[int]) -> lax.ConvDimensionNumbers:
    """Dimension numbers for inputs ``(batch, *spatial, channels)`` of this shape."""
    ndim = len(shape)
    inputs = (0, ndim - 1, *range(1, ndim - 1))
    kernel = (ndim - 1, ndim - 2, *range(ndim - 2))
    return lax.ConvDimensionNumbers(inputs, kernel, inputs)


def padded_inputs(
    inputs: jax.Array, padding: Any, kernel_size: Sequence[int], kernel_dilation: Sequence[int]
) -> tuple[jax.Array, Any]:
    """``inputs`` after the padding modes that ``lax`` lacks, and the padding left for ``lax``.

    Args:
      inputs: ``(batch, *spatial, channels)``.
      padding: see :func:`canonicalize_padding`, or CIRCULAR, REFLECT or CAUSAL.

    Raises:
      ValueError: CAUSAL with more than one spatial axis.
    """
    padding = canonicalize_padding(padding, len(kernel_size))
    if padding in ("CIRCULAR", "REFLECT"):
        reach = [(k - 1) * d + 1 for k, d in zip(kernel_size, kernel_dilation, strict=False)]
        pads = [(0, 0), *[((k - 1) // 2, k // 2) for k in reach], (0, 0)]
        mode = "wrap" if padding == "CIRCULAR" else "reflect"
        return jnp.pad(inputs, pads, mode=mode), "VALID"
    if padding == "CAUSAL":
        if len(kernel_size) != 1:
            raise ValueError(
                f"Causal padding is for convolutions over one axis, found kernel_size={kernel_size}"
            )
        left = kernel_dilation[0] * (kernel_size[0] - 1)
        return jnp.pad(inputs, [(0, 0), (left, 0), (0, 0)]), "VALID"
    return inputs, padding
