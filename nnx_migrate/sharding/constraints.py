"""Constraints on activations by logical names: one call for Auto and Explicit axes."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

from flax.core.spmd import get_logical_axis_rules
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from nnx_migrate.sharding.fitting import MISFITS, Misfit, fit_spec, refuse_other_words
from nnx_migrate.sharding.placing import AnyMesh, ambient_mesh, apply_spec
from nnx_migrate.sharding.resolve import (
    Names,
    Rules,
    axis_sizes,
    mesh_axes,
    resolve_spec,
    unassigned_dimensions,
)


class RulesFallback(Enum):
    """What to do with an array that has a name no rule applies to (Linen's three)."""

    AXIS_IS_UNSHARDED = "axis_is_unsharded"
    RAISE_ERROR = "raise_error"
    NO_CONSTRAINT = "no_constraint"


def constrain(
    x: Any,
    names: Names | NamedSharding | None,
    rules: Rules | None = None,
    mesh: AnyMesh | None = None,
    *,
    fallback: RulesFallback = RulesFallback.AXIS_IS_UNSHARDED,
    misfit: Misfit | Literal["pad"] = "raise",
) -> Any:
    """``x`` sharded as its logical names say: with the resolver that parameters use.

    Under Explicit axes the array is resharded, under Auto axes it is constrained; a mesh may have
    both. Mesh axes of size 1 are never in the spec, so two arrays whose specs differ by one are sharded alike:
    ``with_sharding_constraint`` by hand asserts there (MaxText's #4208). Without rules, without
    names and without a mesh, ``x`` is returned as it is, as by Linen's ``with_logical_constraint``
    (flax 0.12.8, linen/spmd.py).

    Args:
      x: an array of any shape and dtype, traced or not.
      names: logical names, one per dimension; trailing ones may be left out. A PartitionSpec is
        read as names, a NamedSharding is taken as it is.
      rules: pairs (name, mesh axes). Without: the context's.
      mesh: without: that of ``jax.set_mesh`` or ``use_abstract_mesh``.
      fallback: what to do when a name got no mesh axes because no rule applies to it.
      misfit: "raise" refuses more names than dimensions and sizes that their mesh axes do not
        divide; "drop" drops the names and replicates the dimensions; "pad" leaves such sizes to
        XLA, which pads them, where axes are Auto and in a trace, and refuses the rest.

    Raises:
      ValueError: the names do not fit ``x``; a name is given twice; ``fallback`` is RAISE_ERROR and
        a name got nothing; a PartitionSpec names a mesh axis that no rule mentions; ``misfit`` is none of its words.
    """
    refuse_other_words("misfit", misfit, (*MISFITS, "pad"))
    if isinstance(names, NamedSharding):
        spec = _fit(names.spec, x, names.mesh, misfit)
        return apply_spec(x, names.mesh, spec, names.memory_kind)
    rules = get_logical_axis_rules() if rules is None else rules
    mesh = ambient_mesh() if mesh is None else mesh
    if names is None or not rules or mesh is None:
        return x
    if isinstance(names, PartitionSpec):
        _refuse_mesh_axes(names, rules, mesh)
    if falls_back(names, rules, fallback):
        return x
    spec = resolve_spec(names, rules, mesh)
    return apply_spec(x, mesh, _fit(spec, x, mesh, misfit))


def falls_back(names: Names, rules: Rules, fallback: RulesFallback) -> bool:
    """Whether an array of these names is left as it is, for one that no rule applies to.

    Raises:
      ValueError: there is one and ``fallback`` is RAISE_ERROR; a name is given twice.
    """
    waiting = _names_without_rule(names, rules)
    if waiting and fallback is RulesFallback.RAISE_ERROR:
        raise ValueError(f"expected a rule for every name of {names}, found none for {waiting}")
    return bool(waiting) and fallback is RulesFallback.NO_CONSTRAINT


def _fit(
    spec: PartitionSpec, x: Any, mesh: AnyMesh, misfit: Misfit | Literal["pad"]
) -> PartitionSpec:
    if misfit != "pad":
        return fit_spec(spec, x.shape, axis_sizes(mesh), misfit)
    if AxisType.Explicit in mesh.axis_types:
        return fit_spec(spec, x.shape, axis_sizes(mesh), "raise")
    return spec


def _names_without_rule(names: Names, rules: Rules) -> tuple[str, ...]:
    """The names that no rule applies to."""
    sequence = [names] if isinstance(names, str) else list(names)
    return tuple(sequence[dim] for dim in unassigned_dimensions(names, rules))


def _refuse_mesh_axes(names: PartitionSpec, rules: Rules, mesh: AnyMesh) -> None:
    """A spec of mesh axes would be read as names without rules, and silently replicate."""
    rule_names = {name for name, _ in rules}
    axes = [axis for entry in names for axis in mesh_axes(entry) if axis in axis_sizes(mesh)]
    if found := [axis for axis in axes if axis not in rule_names]:
        raise ValueError(
            f"expected logical names in {names}, found mesh axes {found} that no rule mentions: "
            "pass NamedSharding(mesh, spec) for a spec that is resolved"
        )
