"""Every array of a state with its names, its specs and what was decided silently about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
from flax import nnx
from flax.core.spmd import get_logical_axis_rules
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from nnx_migrate.sharding.annotations import Names, annotation, frozen_rules
from nnx_migrate.sharding.compare import spec_of
from nnx_migrate.sharding.fitting import Misfit
from nnx_migrate.sharding.named_shardings import construct_named_sharding
from nnx_migrate.sharding.resolve import Rules, explain_spec, resolve_spec
from nnx_migrate.sharding.silent import NameUnmatched, RuleLost, Silent


@dataclass(frozen=True, slots=True)
class DescribedSharding:
    """One variable, or one array outside a variable.

    Attributes:
      path: where it is (``layers_0/Dense_0/kernel``).
      shapes: of its arrays: one, or those of a composite value.
      names: its logical names, one per dimension, stacking axes included; None: it has none.
      spec: what the rules alone say, which is Linen's answer; None without names.
      shardings: of its arrays, on the mesh.
      silent: rules that lost, names without a rule, mesh axes dropped.
    """

    path: str
    shapes: tuple[tuple[int, ...], ...]
    names: Names | None
    spec: PartitionSpec | None
    shardings: tuple[NamedSharding, ...]
    silent: tuple[Silent, ...]


def describe_shardings(
    state: Any, mesh: Mesh | AbstractMesh, rules: Rules | None = None, *, misfit: Misfit = "raise"
) -> tuple[DescribedSharding, ...]:
    """How each array of a state is sharded and why, in tree order.

    The shardings are those of :func:`construct_named_sharding` with the same arguments.

    Args:
      state: a state, module or any tree of Variables and arrays; concrete or abstract.
      mesh: an AbstractMesh will do.
      rules: as there; without: the context's.
      misfit: as there.

    Raises:
      ValueError, TypeError: as :func:`construct_named_sharding`.
    """
    rules = frozen_rules(get_logical_axis_rules() if rules is None else rules)
    shardings = construct_named_sharding(state, mesh, rules, misfit=misfit)
    found, _ = jax.tree_util.tree_flatten_with_path(state, is_leaf=_is_variable)
    ours = jax.tree.leaves(shardings, is_leaf=_is_variable)
    return tuple(
        _describe(
            jax.tree_util.keystr(path, simple=True, separator="/"), leaf, sharding, mesh, rules
        )
        for (path, leaf), sharding in zip(found, ours, strict=True)
    )


def silent_losses(descriptions: tuple[DescribedSharding, ...]) -> tuple[Silent, ...]:
    """What strict resolution would refuse, over a whole state: rules that lost, names without one."""
    return tuple(
        silent
        for one in descriptions
        for silent in one.silent
        if isinstance(silent, RuleLost | NameUnmatched)
    )


def _describe(
    path: str, leaf: Any, sharding: Any, mesh: Mesh | AbstractMesh, rules: Rules
) -> DescribedSharding:
    arrays, shardings = jax.tree.leaves(leaf), tuple(jax.tree.leaves(sharding))
    shapes = tuple(jax.numpy.shape(array) for array in arrays)
    names: Names | None = None
    own: tuple[tuple[str, Any], ...] = ()
    if isinstance(leaf, nnx.Variable):
        notes = annotation(leaf.get_metadata())
        names, own = notes.names_of(max(map(len, shapes), default=0)), notes.rules
    if names is None or isinstance(names, PartitionSpec | NamedSharding):
        spec = None if names is None else spec_of(names)
        return DescribedSharding(path, shapes, names, spec, shardings, ())
    # Without any rules names are mesh axes.
    all_rules = (*own, *rules) or tuple((axis, axis) for axis in mesh.axis_names)
    silent = explain_spec(names, all_rules, mesh, array=path).silent
    spec = resolve_spec(names, all_rules)
    return DescribedSharding(path, shapes, names, spec, shardings, silent)


def _is_variable(node: Any) -> bool:
    return isinstance(node, nnx.Variable)
