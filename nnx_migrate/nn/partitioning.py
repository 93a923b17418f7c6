"""Logical axis names on parameters: kept with the variable, applied by whoever shards the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from flax import nnx

Rules = Sequence[tuple[str, Any]]

# Metadata of the variable. Not NNX's own ``out_sharding``: under that name NNX resolves and applies
# the axes while it constructs, by rules that are not Linen's, and fails where there is no mesh.
LOGICAL_AXES = "logical_axes"
LOGICAL_RULES = "logical_axis_rules"
LOGICAL_MESH = "logical_mesh"


def with_logical_partitioning(
    fn: Callable[..., jax.Array],
    names: Sequence[Any],
    mesh: jax.sharding.Mesh | None = None,
    rules: Rules | None = None,
) -> Callable[..., Any]:
    """``linen.with_logical_partitioning``: an initialiser whose variable knows its axis names.

    The variable made from ``fn``'s value carries ``names`` as metadata ``logical_axes`` (and
    ``logical_axis_rules``, ``logical_mesh`` when given). Nothing is constrained by them; Linen does
    that when it reads the parameter under a mesh (flax 0.12.8, linen/spmd.py).

    Args:
      fn: an initialiser.
      names: one logical axis name (or None) per axis of the value.
    """
    metadata: dict[str, Any] = {LOGICAL_AXES: tuple(names)}
    if rules is not None:
        metadata[LOGICAL_RULES] = tuple((name, axes) for name, axes in rules)
    if mesh is not None:
        metadata[LOGICAL_MESH] = mesh
    return nnx.with_metadata(fn, **metadata)


def with_partitioning(
    fn: Callable[..., jax.Array], names: Sequence[Any], mesh: jax.sharding.Mesh | None = None
) -> Callable[..., Any]:
    """``linen.with_partitioning``: as above, for names that are mesh axes.

    The variable has a rule of its own for each name, to itself: no other rules change what its
    names mean (flax 0.12.8, core/meta.py).

    Args:
      fn: an initialiser.
      names: a mesh axis, a tuple of several, or None per axis of the value.
      mesh: kept with the variable.
    """
    return with_logical_partitioning(
        fn, names, mesh, [(name, name) for name in names if isinstance(name, str)]
    )
