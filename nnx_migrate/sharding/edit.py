"""Change specs by mesh axis: take axes out, shard optimizer state over data (ZeRO-1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import jax
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding.compare import axes_of, spec_of
from nnx_migrate.sharding.resolve import Entry, MeshLike, axis_sizes, mesh_axes

T = TypeVar("T")
S = TypeVar("S", PartitionSpec, NamedSharding)

FSDP_AXES = ("fsdp", "fsdp_transpose")


def remove_axes(tree: T, axes: Collection[str] | str, dims: Collection[int] | None = None) -> T:
    """The same tree with specs that do not shard over ``axes``.

    A string becomes None, a tuple keeps its other axes, and an empty one becomes None.
    ``reduced`` and ``unreduced`` stay as they are.

    Args:
      tree: PartitionSpecs and NamedShardings in any containers, Variables included; or one alone.
      axes: the mesh axes to take out, or one.
      dims: the dimensions to look at, counted from the front; without: all.

    Raises:
      ValueError: an UNCONSTRAINED dimension among them: jax may choose the axes for it; or a
        negative one, which a spec that is shorter than the rank does not have.
      TypeError: a leaf that is neither.
    """
    axes = mesh_axes(axes) if isinstance(axes, str) else axes
    if dims is not None and min(dims, default=0) < 0:
        raise ValueError(f"expected dimensions counted from the front, found {sorted(dims)}")

    def remove(spec: PartitionSpec) -> PartitionSpec:
        entries = [
            _without(entry, axes, spec) if dims is None or dim in dims else entry
            for dim, entry in enumerate(spec.partitions)
        ]
        new_spec: PartitionSpec = spec.update(partitions=entries)
        return new_spec

    return map_specs(remove, tree)


def remove_fsdp(tree: T, dims: Collection[int] | None = None) -> T:
    """:func:`remove_axes` for ``fsdp`` and ``fsdp_transpose``: what a gather over them leaves."""
    return remove_axes(tree, FSDP_AXES, dims)


def add_data_to_sharding(
    sharding: S, shape: Sequence[int], mesh: MeshLike | None = None, axis: str = "data"
) -> S:
    """Shard one more dimension over ``data``: ZeRO-1's layout of optimizer state.

    The first dimension from the left is taken whose size per shard is divisible by the size of
    ``axis`` and that is not sharded over ``tensor``; ``axis`` comes before the axes it has. Without
    such a dimension nothing changes. Nothing changes either where the spec has ``axis`` already or
    ``axis`` has size 1 (MaxText's function raises there, and adds an axis that does nothing).

    Args:
      sharding: a NamedSharding, or a PartitionSpec and ``mesh``. A spec is read up to the rank.
      shape: of the array.
      mesh: needed with a PartitionSpec.
      axis: the mesh axis to add.

    Raises:
      ValueError: the spec shards dimensions the array does not have, a dimension is not divisible
        by its axes, or there is no mesh.
    """
    sizes = axis_sizes(_mesh_of(sharding, mesh))
    spec = spec_of(sharding)
    if sizes.get(axis, 1) == 1 or axis in axes_of(spec):
        return sharding
    entries = _to_rank(spec, len(shape))
    for dim in range(len(shape)):
        entry: Entry = entries[dim]
        if entry is PartitionSpec.UNCONSTRAINED or "tensor" in mesh_axes(entry):
            continue
        if _per_shard(shape, dim, entry, sizes) % sizes[axis] == 0:
            entries[dim] = (axis, *mesh_axes(entry))
            new_sharding: S = _with_spec(sharding, spec.update(partitions=entries))
            return new_sharding
    return sharding


def shard_over_data(shardings: T, arrays: Any, axis: str = "data") -> T:
    """:func:`add_data_to_sharding` for a tree of NamedShardings and a like tree of arrays.

    Raises:
      ValueError: the trees differ in structure; and as :func:`add_data_to_sharding`.
    """
    new_tree: T = jax.tree.map(
        lambda sharding, array: add_data_to_sharding(sharding, array.shape, axis=axis),
        shardings,
        arrays,
    )
    return new_tree


def map_specs(change: Callable[[PartitionSpec], PartitionSpec], tree: T) -> T:
    """Apply ``change`` to every spec of a tree; of a NamedSharding mesh and memory kind stay.

    Raises:
      TypeError: a leaf that is neither a PartitionSpec nor a NamedSharding.
    """

    def leaf(one: Any) -> Any:
        if isinstance(one, PartitionSpec | NamedSharding):
            return _with_spec(one, change(spec_of(one)))
        raise TypeError(
            f"expected PartitionSpecs or NamedShardings, found {type(one).__name__}: {one!r}"
        )

    new_tree: T = jax.tree.map(leaf, tree)
    return new_tree


def _with_spec(sharding: Any, spec: PartitionSpec) -> Any:
    return sharding.update(spec=spec) if isinstance(sharding, NamedSharding) else spec


def _without(entry: Entry, axes: Collection[str], spec: PartitionSpec) -> Entry:
    if entry is PartitionSpec.UNCONSTRAINED:
        raise ValueError(
            f"expected mesh axes or None, found UNCONSTRAINED in {spec}: jax may shard it over "
            f"{', '.join(axes)}. Name the axes of that dimension, or leave it out of dims."
        )
    return tuple(axis for axis in mesh_axes(entry) if axis not in axes)


def _mesh_of(sharding: PartitionSpec | NamedSharding, mesh: MeshLike | None) -> MeshLike:
    if mesh is not None:
        return mesh
    if isinstance(sharding, NamedSharding):
        return sharding.mesh
    raise ValueError(f"expected a mesh with a PartitionSpec, found none for {sharding}: pass mesh=")


def _to_rank(spec: PartitionSpec, rank: int) -> list[Entry]:
    """The entries of a spec, one per dimension; what is cut off must not shard."""
    entries = list(spec.partitions)
    if any(entry is not None for entry in entries[rank:]):
        raise ValueError(f"expected a spec for {rank} dimensions, found {spec}")
    return entries[:rank] + [None] * (rank - len(entries))


def _per_shard(shape: Sequence[int], dim: int, entry: Entry, sizes: Mapping[str, int]) -> int:
    shards = math.prod(sizes.get(axis, 1) for axis in mesh_axes(entry))
    if shape[dim] % shards:
        raise ValueError(
            f"expected dimension {dim} of {tuple(shape)} to be divisible by {shards} "
            f"(mesh axes {entry!r}), found {shape[dim]}"
        )
    return shape[dim] // shards
