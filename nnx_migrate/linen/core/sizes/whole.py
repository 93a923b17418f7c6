"""Whole shapes of inputs that a method does not show, as of images that a convolution's layers flatten."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax.numpy as jnp
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes.trial_shapes import (
    built_shapes,
    modules_of,
    options_of,
    try_build,
)

Shape = tuple[int, ...]
_RANKS = (4, 3, 2, 5, 1)
_EDGES = (64, 128)  # of inputs that layers are built for, as a trial


def trial_shape(make: Callable[..., Any], sizes: Mapping[str, Any], name: str) -> Shape | None:
    """A shape with which the module can be built, where it shows in layers alone.

    A layer that was built for another shape has a variable of another shape, which raises when the call
    reads it: ``model.apply(variables, z, method="decode")`` does not reach the encoder's.

    Args:
      sizes: the other sizes with which the module is built.

    Returns:
      None where the module itself, or a class that is no layer of a library, keeps something of it.
    """
    trials = next(filter(None, (_trials(make, sizes, name, rank) for rank in _RANKS)), None)
    if trials is None or not _shows_in_layers_alone(*trials.values()):
        return None
    return next(iter(trials))


def fitting_shape(
    make: Callable[..., Any],
    sizes: Mapping[str, Any],
    name: str,
    input_shapes: Iterable[Shape],
    variable_shapes: Mapping[tuple[str, ...], Shape],
) -> Shape | None:
    """The first of the call's inputs' shapes for which the module has the variables held that hang on it.

    Args:
      sizes: a trial of this size among them.
    """
    trial = try_build(functools.partial(built_shapes, make, dict(sizes))) or {}
    for shape in input_shapes:
        shapes = try_build(functools.partial(built_shapes, make, {**sizes, name: shape}))
        if shapes is None:
            continue
        others = {path: one for path, one in shapes.items() if trial.get(path) != one}
        if all(variable_shapes.get(path, one) == one for path, one in others.items()):
            return shape
    return None


def _trials(
    make: Callable[..., Any], sizes: Mapping[str, Any], name: str, rank: int
) -> dict[Shape, nnx.Module] | None:
    """Modules by two shapes of a rank; None where it is not the input's."""
    found: dict[Shape, nnx.Module] = {}
    for shape in ((edge,) * rank for edge in _EDGES):
        built = functools.partial(make, **{**sizes, name: shape})
        model = try_build(functools.partial(nnm.abstract, built))
        if model is None:
            return None
        found[shape] = model
    return found


def _shows_in_layers_alone(one: nnx.Module, other: nnx.Module) -> bool:
    """Whether modules differ only in layers whose own variables differ, too."""
    ours, theirs = modules_of(one), modules_of(other)
    return ours.keys() == theirs.keys() and all(
        options_of(ours[path]) == options_of(theirs[path])
        or (_is_layer(ours[path]) and _own_shapes(ours[path]) != _own_shapes(theirs[path]))
        for path in ours
    )


def _is_layer(module: nnx.Module) -> bool:
    return type(module).__module__.startswith(("flax.nnx.", "nnx_migrate.nn."))


def _own_shapes(module: nnx.Module) -> dict[str, Shape]:
    """The shapes of variables that are the module's own."""
    own = {name: one for name, one in vars(module).items() if isinstance(one, nnx.Variable)}
    return {name: jnp.shape(one.get_value()) for name, one in own.items()}
