"""Initialisers that give logical axis names: kept with the variable, applied by who shards the state."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from nnx_migrate.sharding.boxes import LOGICAL_AXES, LogicallyPartitioned, Partitioned

__all__ = [
    "LOGICAL_AXES",
    "with_logical_partitioning",
    "with_partitioning",
]

Rules = Sequence[tuple[str, Any]]


def with_logical_partitioning(
    fn: Callable[..., Any],
    names: Sequence[Any],
    mesh: jax.sharding.Mesh | None = None,
    rules: Rules | None = None,
) -> Callable[..., LogicallyPartitioned]:
    """``linen.with_logical_partitioning``: an initialiser whose variable knows its axis names.

    The variable made from ``fn``'s value carries ``names`` as metadata ``logical_axes`` (and
    ``logical_axis_rules``, ``logical_mesh`` when given). Nothing is constrained by them; Linen does
    that when it reads a boxed parameter under a mesh (flax 0.12.8, linen/spmd.py).

    Args:
      fn: an initialiser.
      names: one logical axis name (or None) per axis of the value.
    """

    @functools.wraps(fn)
    def init(*args: Any, **kwargs: Any) -> LogicallyPartitioned:
        return LogicallyPartitioned(fn(*args, **kwargs), names, mesh, rules)

    return init


def with_partitioning(
    fn: Callable[..., Any], names: Sequence[Any], mesh: jax.sharding.Mesh | None = None
) -> Callable[..., Partitioned]:
    """``linen.with_partitioning``: as above, for names that are mesh axes.

    The variable has a rule of its own for each name, to itself: no other rules change what its
    names mean (flax 0.12.8, core/meta.py).

    Args:
      fn: an initialiser.
      names: a mesh axis, a tuple of several, or None per axis of the value.
      mesh: kept with the variable.
    """

    @functools.wraps(fn)
    def init(*args: Any, **kwargs: Any) -> Partitioned:
        return Partitioned(fn(*args, **kwargs), names, mesh)

    return init
