"""Functions with Linen's names and arguments, for rewritten code (flax 0.12.8, linen/spmd.py)."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
from flax.core.spmd import get_logical_axis_rules
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding.constraints import RulesFallback, constrain, falls_back
from nnx_migrate.sharding.placing import AnyMesh
from nnx_migrate.sharding.resolve import Names, Rules, resolve_spec

T = TypeVar("T")


def with_logical_constraint(
    x: T,
    logical_axis_resources: Any,
    rules: Rules | None = None,
    mesh: AnyMesh | None = None,
    fallback: RulesFallback = RulesFallback.AXIS_IS_UNSHARDED,
) -> T:
    """``linen.with_logical_constraint``: :func:`constrain` over trees.

    As in Linen, sizes that the mesh axes do not divide are padded under ``jit`` with Auto axes.
    Unlike Linen's, the spec has no mesh axes of size 1 or that the mesh lacks, and Explicit axes
    are served too. A name is a logical name, in a PartitionSpec and where a mesh axis has the same:
    without a rule its dimension is not sharded.

    Args:
      x: an array, or a tree of arrays.
      logical_axis_resources: a tuple or PartitionSpec of names (or None), or a tree of them, of
        which ``x``'s tree is an extension.
      rules, mesh, fallback: see :func:`constrain`.

    Raises:
      ValueError: as :func:`constrain`; of names, as in Linen, also without a mesh.
    """
    if logical_axis_resources is None:
        return x
    rules = get_logical_axis_rules() if rules is None else rules
    tree: T = jax.tree.map(
        lambda names, part: _constrain_leaf(part, names, rules, mesh, fallback),
        logical_axis_resources,
        x,
        is_leaf=_is_names,
    )
    return tree


def _constrain_leaf(
    x: Any,
    names: Names | NamedSharding | None,
    rules: Rules,
    mesh: AnyMesh | None,
    fallback: RulesFallback,
) -> Any:
    if isinstance(names, NamedSharding):
        return constrain(x, names, misfit="pad")
    if names is None or not rules:
        return x
    if isinstance(names, PartitionSpec):
        names = tuple(names)  # names to Linen; to `constrain` perhaps a spec that is resolved
    if falls_back(names, rules, fallback):
        return x
    return constrain(x, names, rules, mesh, fallback=fallback, misfit="pad")


def logical_to_mesh_axes(
    array_dim_names: Names | None, rules: Rules | None = None
) -> PartitionSpec | None:
    """``linen.logical_to_mesh_axes``: :func:`resolve_spec` without a mesh."""
    return resolve_spec(array_dim_names, rules)


def logical_to_mesh(tree: Any, rules: Rules | None = None) -> Any:
    """``linen.logical_to_mesh``: the same for every PartitionSpec of names in a tree."""
    return jax.tree.map(
        lambda names: resolve_spec(names, rules),
        tree,
        is_leaf=lambda node: isinstance(node, PartitionSpec),
    )


def logical_to_mesh_sharding(tree: Any, mesh: AnyMesh, rules: Rules | None = None) -> Any:
    """``linen.logical_to_mesh_sharding``: the same, as NamedShardings on ``mesh``."""
    return jax.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        logical_to_mesh(tree, rules),
        is_leaf=lambda node: isinstance(node, PartitionSpec),
    )


def _is_names(node: Any) -> bool:
    """None, a PartitionSpec, or a tuple of names, None and UNCONSTRAINED."""
    if node is None or isinstance(node, PartitionSpec):
        return True
    return isinstance(node, tuple) and all(
        one is None or isinstance(one, str) or one is PartitionSpec.UNCONSTRAINED for one in node
    )
