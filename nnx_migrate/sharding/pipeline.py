"""Specs and rules of pipelined models: a dimension over stages, and stages as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from jax.sharding import AbstractMesh, Mesh, PartitionSpec

from nnx_migrate.sharding.axis_rules import AxisRules
from nnx_migrate.sharding.edit import remove_fsdp
from nnx_migrate.sharding.resolve import Entry, mesh_axes

STAGE, DATA = "stage", "data"


def shard_dim_by_stages(
    spec: PartitionSpec | None,
    dim: int,
    rank: int,
    mesh: Mesh | AbstractMesh,
    *,
    stage_weight: bool = False,
) -> PartitionSpec:
    """The spec of an array whose dimension ``dim`` is one pipeline stage per device row.

    ``fsdp`` and ``fsdp_transpose`` leave the spec (the weights of a stage are gathered before its
    use), ``stage`` is placed on ``dim``. Dimensions without an entry are left open: UNCONSTRAINED
    if the mesh's axes are Auto, None if they are Explicit. A weight of a stage under Explicit axes
    is ``reduced`` over ``data`` and ``fsdp`` where they have more than one device, so that its
    gradient is summed over them.

    Args:
      spec: of the array so far; None: nothing is known of it, every other dimension is left open.
      dim: from 0.
      rank: number of dimensions of the array.
      mesh: all of its axes Auto, or all Explicit.
      stage_weight: whether the array is a weight, rather than an activation.

    Raises:
      ValueError: ``dim`` or the spec is beyond the rank, ``dim`` is sharded over other axes,
        another dimension over ``stage``, or the mesh mixes axis types.
    """
    explicit = _explicit(mesh)
    left_open = None if explicit else PartitionSpec.UNCONSTRAINED
    if not 0 <= dim < rank:
        raise ValueError(f"expected a dimension from 0 to {rank - 1}, found {dim}")
    entries = [] if spec is None else _without_fsdp(spec)
    if len(entries) > rank:
        raise ValueError(f"expected a spec for {rank} dimensions, found {spec}")
    entries += [left_open] * (rank - len(entries))
    _refuse_conflict(entries, dim, spec)
    entries[dim] = STAGE
    if spec is None or not (stage_weight and explicit):
        return PartitionSpec(*entries)
    reduced_axes = {axis for axis in (DATA, "fsdp") if mesh.shape.get(axis, 1) > 1}
    return PartitionSpec(*entries, reduced=reduced_axes)


def pipeline_as_data(rules: Iterable[tuple[str, Entry]]) -> tuple[tuple[str, Entry], ...]:
    """Rules for a mesh whose stages hold the whole model: ``stage`` becomes one more data axis.

    ``stage`` leaves every rule and comes back directly before ``data``.
    """
    return tuple((name, stage_before_data(axes)) for name, axes in rules)


def pipeline_as_data_rules(rules: AxisRules) -> AxisRules:
    """:func:`pipeline_as_data` for the rules and the data sharding of a file."""
    data = rules.data_sharding
    return replace(
        rules,
        logical_axis_rules=pipeline_as_data(rules.logical_axis_rules),
        data_sharding=None if data is None else tuple(map(stage_before_data, data)),
    )


def stage_before_data(entry: Entry) -> Entry:
    """One entry with ``stage`` taken out and put before ``data``."""
    axes = tuple(mesh_axes(entry))
    if STAGE not in axes and DATA not in axes:
        return entry
    order: list[Any] = []
    for axis in axes:
        order += [STAGE, DATA] if axis == DATA else [axis] * (axis != STAGE)
    return tuple(order)


def _without_fsdp(spec: PartitionSpec) -> list[Entry]:
    """The entries without FSDP axes; what is left to jax stays so."""
    axes_of_entries = [
        dim for dim, one in enumerate(spec.partitions) if one is not PartitionSpec.UNCONSTRAINED
    ]
    return list(remove_fsdp(spec, axes_of_entries).partitions)


def _refuse_conflict(entries: list[Entry], dim: int, spec: PartitionSpec | None) -> None:
    here = [axis for axis in mesh_axes(entries[dim]) if axis != STAGE]
    if here:
        raise ValueError(
            f"expected dimension {dim} to be free for {STAGE!r}, found it over {', '.join(here)} "
            f"in {spec}"
        )
    for other, entry in enumerate(entries):
        if other != dim and STAGE in mesh_axes(entry):
            raise ValueError(
                f"expected {STAGE!r} on dimension {dim} only, found it on {other} in {spec}"
            )


def _explicit(mesh: Mesh | AbstractMesh) -> bool:
    if mesh.are_all_axes_explicit or mesh.are_all_axes_auto:
        return bool(mesh.are_all_axes_explicit)
    raise ValueError(f"expected all mesh axes Auto or all Explicit, found {mesh.axis_types}")
