"""Initialisers that give logical axis names: kept with the variable, applied by who shards the state."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from flax import nnx

from nnx_migrate.sharding.boxes import LOGICAL_AXES, UNBOXED, LogicallyPartitioned, Partitioned
from nnx_migrate.sharding.constraints import RulesFallback
from nnx_migrate.sharding.linen_names import with_logical_constraint

__all__ = [
    "LOGICAL_AXES",
    "constrained_value",
    "set_constrained_value",
    "with_logical_partitioning",
    "with_named_axes",
    "with_partitioning",
]

_FALLBACK = "axis_fallback"  # metadata: what to do with names that no rule has
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


def with_named_axes(
    fn: Callable[..., Any],
    axes: Sequence[Any] | None,
    fallback: RulesFallback | None = None,
) -> Callable[..., Any]:
    """The initialiser of ``flax.linen.partitioning.param_with_axes``: names beside a plain value.

    As :func:`with_logical_partitioning`, but where variables are trees the value is in no box, as in
    Linen, which keeps these names in a collection of their own (flax 0.12.8, linen/partitioning.py).

    Args:
      fn: an initialiser.
      axes: one logical axis name (or None) per axis of the value; None for a value without names.
      fallback: of ``variable_with_axes``; kept for :func:`constrained_value`.

    Raises:
      ValueError: the names are those of a tree of arrays.
    """
    if axes is None:
        return fn
    if isinstance(axes, Mapping) or any(isinstance(one, tuple | list | Mapping) for one in axes):
        raise ValueError(
            f"expected one logical axis name or None per dimension, found {axes!r}: names for a "
            "tree of arrays are not supported, declare every array on its own"
        )
    metadata: dict[str, Any] = {LOGICAL_AXES: tuple(axes), UNBOXED: True}
    metadata |= {} if fallback is None else {_FALLBACK: fallback}
    return nnx.with_metadata(fn, **metadata)


def constrained_value(variable: nnx.Variable[Any]) -> Any:
    """``v.value`` of Linen's ``v = variable_with_axes(...)``: constrained by the names, if any."""
    return _constrained(variable, variable.get_value())


def set_constrained_value(variable: nnx.Variable[Any], value: Any) -> None:
    """``v.value = value`` of Linen's ``v = variable_with_axes(...)``."""
    variable.set_value(_constrained(variable, value))


def _constrained(variable: nnx.Variable[Any], value: Any) -> Any:
    metadata = variable.get_metadata()
    fallback = metadata.get(_FALLBACK, RulesFallback.AXIS_IS_UNSHARDED)
    return with_logical_constraint(value, metadata.get(LOGICAL_AXES), fallback=fallback)
