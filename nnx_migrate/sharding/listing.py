"""What a state leaves unsaid about its shardings: arrays without names, names without axes."""

from __future__ import annotations

from typing import Any

import jax
from flax import nnx

from nnx_migrate.sharding.annotations import annotation
from nnx_migrate.sharding.leaves import shape_of
from nnx_migrate.sharding.resolve import MeshLike, axis_sizes


def unannotated(state: Any) -> tuple[str, ...]:
    """Paths of the arrays that carry no names, in tree order (``layers_0/Dense_0/bias``)."""
    leaves = jax.tree.leaves(state, is_leaf=is_variable)
    return tuple(
        path
        for path, leaf in zip(paths_of(state), leaves, strict=True)
        if jax.tree.leaves(leaf)
        and not (
            isinstance(leaf, nnx.Variable) and annotation(leaf.get_metadata()).names is not None
        )
    )


def should_have_names(leaf: Any) -> bool:
    """Parameters, and arrays that lost their Variable; not counters, keys and statistics."""
    if isinstance(leaf, nnx.Variable):
        return isinstance(leaf, nnx.Param)
    return shape_of(leaf) != ()


def names_without_axes(state: Any, mesh: MeshLike) -> list[str]:
    """Names that are no mesh axes, of variables without rules of their own."""
    found: set[str] = set()
    for leaf in jax.tree.leaves(state, is_leaf=is_variable):
        notes = annotation(leaf.get_metadata()) if isinstance(leaf, nnx.Variable) else None
        if notes is not None and not notes.rules and isinstance(notes.names, tuple):
            found |= {name for name in notes.names if isinstance(name, str)}
    return sorted(found - set(axis_sizes(mesh)))


def paths_of(tree: Any) -> list[str]:
    """Path of every Variable or array, in tree order."""
    found, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_variable)
    return [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in found]


def is_variable(node: Any) -> bool:
    """Whether a node of a tree is a Variable, for ``is_leaf``."""
    return isinstance(node, nnx.Variable)
