"""Functions with Linen's names and arguments, for rewritten code (flax 0.12.8, linen/spmd.py)."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding.constraints import RulesFallback, constrain
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
    are served too.

    Args:
      x: an array, or a tree of arrays.
      logical_axis_resources: a tuple of names (or None), or a tree of them, of which ``x``'s tree
        is an extension.
      rules, mesh, fallback: see :func:`constrain`.
    """
    if logical_axis_resources is None:
        return x
    constrained: T = jax.tree.map(
        lambda names, part: constrain(part, names, rules, mesh, fallback=fallback, misfit="pad"),
        logical_axis_resources,
        x,
        is_leaf=_is_names,
    )
    return constrained


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
    """None, or a tuple of names, None and UNCONSTRAINED."""
    return node is None or (
        isinstance(node, tuple | PartitionSpec)
        and all(
            one is None or isinstance(one, str) or one is PartitionSpec.UNCONSTRAINED
            for one in node
        )
    )
