"""What a call returned: its arrays, its containers, and the loss that is taken of it."""

from __future__ import annotations

import enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nnx_migrate.parity.case import ParityCase
from nnx_migrate.parity.values import is_array, is_inexact, named_leaves


class NoLoss(Exception):
    """There is nothing to differentiate; the message says why."""


def array_outputs(outputs: Any) -> tuple[list[str], list[Any]]:
    """Return the paths of the arrays of a pytree, and the arrays."""
    leaves, _ = named_leaves(outputs)
    arrays = {path: value for path, value in leaves.items() if is_array(value)}
    return list(arrays), list(arrays.values())


def loss_of(case: ParityCase, outputs: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the loss of a case on the outputs of its model."""
    return default_loss(outputs) if case.loss is None else case.loss(outputs, *arguments)


def default_loss(outputs: Any) -> Any:
    """A scalar that depends on every element of every float output, each with its own weight.

    ``sum(w * (x * x + x)) / n`` in float32; the weights are not constant, so that a permutation
    shows, and are computed in the program, so that they do not swell its text.
    """
    total = jnp.zeros((), jnp.float32)
    used = False
    for number, value in enumerate(array_outputs(outputs)[1]):
        if not is_inexact(value.dtype) or not value.size:
            continue
        used = True
        if jnp.issubdtype(value.dtype, jnp.complexfloating):
            value = value.real + 0.5 * value.imag
        value = value.astype(jnp.float32)
        count = np.float32(value.size)
        places = jnp.arange(value.size, dtype=jnp.float32).reshape(value.shape)
        weights = 1 + 0.5 * jnp.cos(places * 0.7 + np.float32(number))
        total = total + jnp.sum(weights * (value * value + value)) / count
    if not used:
        raise NoLoss("the model has no floating-point output and the case no loss")
    return total


def structure(outputs: Any) -> str:
    """Return the container types of a pytree, with ``*`` for arrays and values for the rest."""
    if outputs is None:
        return "None"
    if is_array(outputs):
        return "*"
    node = jax.tree_util.default_registry.flatten_one_level(outputs)
    if node is None:
        return repr(outputs)
    children = ", ".join(structure(child) for child in node[0])
    name = type(outputs).__name__
    # Linen returned FrozenDict where plain dicts are used today: the same container to callers.
    return f"{'dict' if name == 'FrozenDict' else name}({children})"


def plain_values(outputs: Any) -> dict[str, str]:
    """Values of Python in a pytree, of the kinds whose text tells all; None is none of them."""
    kinds = (bool, int, float, complex, str, bytes, np.generic, np.dtype, enum.Enum)
    leaves, _ = named_leaves(outputs)
    return {path: repr(leaf) for path, leaf in leaves.items() if isinstance(leaf, kinds)}
