"""Logical axis names: the public names of ``flax.linen.spmd`` (flax 0.12.8), to Linen's letter.

Names are resolved by ``nnx_migrate.sharding``, under the rules of ``flax.core.spmd``, which Linen and NNX
share. What differs from ``nnx_migrate.sharding`` is what happens then: mesh axes of size 1 stay in specs and
constraints are set as Linen sets them, so that programs are the same text.
"""

import collections
import dataclasses
import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from flax import struct
from flax.core import meta
from flax.core.spmd import get_logical_axis_rules
from flax.typing import (
    Array,
    ArrayPytree,
    LogicalNames,
    LogicalPartitionSpec,
    LogicalPartitionSpecPytree,
    LogicalRules,
)
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding import boxes
from nnx_migrate.sharding.constraints import RulesFallback
from nnx_migrate.sharding.linen_names import (
    logical_to_mesh,
    logical_to_mesh_axes,
    logical_to_mesh_sharding,
)
from nnx_migrate.sharding.resolve import resolve_spec, unassigned_dimensions

__all__ = [
    "Any",
    "Array",
    "ArrayPytree",
    "Callable",
    "LogicalNames",
    "LogicalPartitionSpec",
    "LogicalPartitionSpecPytree",
    "LogicalRules",
    "LogicallyPartitioned",
    "RulesFallback",
    "Sequence",
    "collections",
    "dataclasses",
    "enum",
    "functools",
    "get_logical_axis_rules",
    "jax",
    "lax",
    "logical_to_mesh",
    "logical_to_mesh_axes",
    "logical_to_mesh_sharding",
    "meta",
    "struct",
    "with_logical_constraint",
    "with_logical_partitioning",
]


class _UnassignedAxis:
    """Stands for a name that no rule applies to."""

    def __repr__(self) -> str:
        return "UnassignedAxis"

    def __bool__(self) -> bool:
        return False


_unassigned_axis = _UnassignedAxis()


def _logical_to_mesh_axes(array_dim_names: Any, rules: LogicalRules | None = None) -> Any:
    """The entries of the spec, ``_unassigned_axis`` where no rule applies; None for None."""
    spec = resolve_spec(array_dim_names, rules)
    if spec is None:
        return None
    open_dimensions = unassigned_dimensions(array_dim_names, rules)
    return [_unassigned_axis if at in open_dimensions else axes for at, axes in enumerate(spec)]


def _with_sharding_constraint(x: Any, axis_resources: Any, mesh: Any = None) -> Any:
    """``lax.with_sharding_constraint`` by mesh axes; ``x`` as it is where there is no mesh."""
    if mesh is None and not meta.global_mesh_defined():
        return x
    if mesh is not None and axis_resources is not None:
        axis_resources = NamedSharding(mesh, axis_resources)
    return lax.with_sharding_constraint(x, axis_resources)


def _with_sharding_constraint_one_fallback(
    axis_resources: Any,
    x: Any,
    fallback: RulesFallback = RulesFallback.AXIS_IS_UNSHARDED,
    rules: LogicalRules | None = None,
    mesh: Any = None,
) -> Any:
    """The constraint of one array, or what ``fallback`` says of names that no rule applies to."""
    entries = _logical_to_mesh_axes(axis_resources, rules)
    if entries is None:
        return _with_sharding_constraint(x, None, mesh=mesh)
    is_unassigned = any(axes is _unassigned_axis for axes in entries)
    if is_unassigned and fallback == RulesFallback.NO_CONSTRAINT:
        return x
    if is_unassigned and fallback == RulesFallback.RAISE_ERROR:
        raise ValueError(f"Axis names {axis_resources} did not match a rule")
    spec = PartitionSpec(*(None if axes is _unassigned_axis else axes for axes in entries))
    return _with_sharding_constraint(x, spec, mesh=mesh)


def _is_axis_spec(x: Any) -> bool:
    return x is None or isinstance(x, str) or x is PartitionSpec.UNCONSTRAINED


def _is_logical_spec(x: Any) -> bool:
    """Whether ``x`` names the axes of one array: None, or a tuple of names."""
    return x is None or (isinstance(x, tuple) and all(map(_is_axis_spec, x)))


def with_logical_constraint(
    x: Any,
    logical_axis_resources: Any,
    rules: LogicalRules | None = None,
    mesh: jax.sharding.Mesh | None = None,
    fallback: RulesFallback = RulesFallback.AXIS_IS_UNSHARDED,
) -> Any:
    """``x`` constrained to be sharded as its logical names say.

    Without rules or names, and without a mesh, ``x`` is returned as it is.

    Args:
      x: an array, or a tree of arrays.
      logical_axis_resources: one logical name (or None, or UNCONSTRAINED) per dimension; or a tree of
        such tuples, of which ``x``'s tree is an extension.
      rules: pairs (name, mesh axes). Without: the context's.
      mesh: without: the global one.
      fallback: what becomes of an array with a name that no rule applies to.

    Raises:
      ValueError: ``fallback`` is RAISE_ERROR and there is such a name; a name is given twice.
    """
    rules = get_logical_axis_rules() if rules is None else rules
    if not rules or logical_axis_resources is None:
        return x
    constrain = functools.partial(
        _with_sharding_constraint_one_fallback, fallback=fallback, rules=rules, mesh=mesh
    )
    return jax.tree.map(constrain, logical_axis_resources, x, is_leaf=_is_logical_spec)


class LogicallyPartitioned(meta.Partitioned[Any]):
    """A value with a logical name (or None) per dimension, and optionally rules of its own."""

    rules: LogicalRules | None = struct.field(default=None, pytree_node=False)

    def __eq__(self, other: object) -> Any:
        """Whether the values are equal, as Linen has it: names are not compared."""
        if self is other:
            return True
        if other.__class__ is self.__class__:
            # In tuples: one array is equal to itself, without a comparison of its elements.
            return (self.value,) == (other.value,)
        return NotImplemented

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        """Boxes of explicit modules count: ``isinstance(x, LogicallyPartitioned)``."""
        return kind is boxes.LogicallyPartitioned or NotImplemented

    def unbox(self, apply_constraint: bool = True) -> Any:
        """The value, constrained by its names under a mesh."""
        has_mesh = self.mesh is not None or meta.global_mesh_defined()
        if not apply_constraint or not has_mesh:
            return self.value
        spec = self.get_partition_spec()
        return with_logical_constraint(self.value, spec, rules=self.rules, mesh=self.mesh)

    def to_nnx_metadata(self) -> dict[str, Any]:
        """The value and the metadata of an ``nnx.Variable``, as ``nnx.bridge`` asks for them."""
        metadata = dict(vars(self))
        metadata["out_sharding"] = metadata.pop("names")
        metadata["sharding_rules"] = metadata.pop("rules", None)
        return metadata

    @classmethod
    def from_nnx_metadata(cls, metadata: dict[str, Any]) -> "LogicallyPartitioned":
        """The box that such a variable came from."""
        given = {
            **metadata,
            "names": metadata["out_sharding"],
            "rules": metadata.get("sharding_rules"),
        }
        fields = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in given.items() if name in fields})


def with_logical_partitioning(
    fn: Callable[..., Any],
    names: LogicalNames,
    mesh: jax.sharding.Mesh | None = None,
    rules: LogicalRules | None = None,
) -> Callable[..., LogicallyPartitioned]:
    """An initialiser whose value is boxed with logical names.

    Args:
      fn: an initialiser.
      names: one per axis of the value, or None.
      mesh, rules: used, where given, in place of the context's.
    """

    @functools.wraps(fn)
    def init_in_box(*args: Any, **kwargs: Any) -> LogicallyPartitioned:
        return LogicallyPartitioned(fn(*args, **kwargs), names, mesh=mesh, rules=rules)

    return init_in_box
