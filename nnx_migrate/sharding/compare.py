"""Compare PartitionSpecs: what differs, and what this mesh cannot show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding.resolve import MeshLike, axis_sizes, mesh_axes


@dataclass(frozen=True, slots=True)
class SpecDifference:
    """One array whose specs differ; None where a side does not have the array."""

    path: str
    left: PartitionSpec | NamedSharding | None
    right: PartitionSpec | NamedSharding | None
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


@dataclass(frozen=True, slots=True)
class SpecComparison:
    """The outcome for all arrays.

    Attributes:
      arrays: how many paths either side has.
      differences: those that differ, sorted by path.
      not_exercised: mesh axes of size 1 that specs use. They were compared by name, but this mesh
        would not show a wrong one.
    """

    arrays: int
    differences: tuple[SpecDifference, ...]
    not_exercised: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether something was compared and all of it was equal."""
        return self.arrays > 0 and not self.differences


def canonical_spec(spec: PartitionSpec) -> PartitionSpec:
    """The spec without None at its end, which says nothing: ``P('a', None)`` becomes ``P('a')``.

    jax itself tells the two apart. Axes of size 1 stay: they would shard on a larger mesh.
    """
    entries = list(spec.partitions)
    while entries and entries[-1] is None:
        entries.pop()
    short: PartitionSpec = spec.update(partitions=entries)
    return short


def compare_specs(
    left: Mapping[str, PartitionSpec | NamedSharding],
    right: Mapping[str, PartitionSpec | NamedSharding],
    mesh: MeshLike | None = None,
) -> SpecComparison:
    """Compare two sides array by array, in canonical form.

    Args:
      left: specs or shardings by path. Of shardings the memory kind is compared too, the mesh is
        not.
      right: the other side.
      mesh: tells which axes have size 1; without it none are listed.
    """
    paths = sorted({*left, *right})
    found = (_difference(path, left.get(path), right.get(path)) for path in paths)
    sizes = {} if mesh is None else axis_sizes(mesh)
    used = {axis for side in (left, right) for spec in side.values() for axis in axes_of(spec)}
    return SpecComparison(
        len(paths),
        tuple(one for one in found if one is not None),
        tuple(axis for axis in sizes if sizes[axis] == 1 and axis in used),
    )


def spec_of(sharding: PartitionSpec | NamedSharding) -> PartitionSpec:
    """The spec of a sharding, or the spec itself."""
    return sharding.spec if isinstance(sharding, NamedSharding) else sharding


def axes_of(sharding: PartitionSpec | NamedSharding) -> frozenset[str]:
    """Mesh axes that a spec names, those of its ``reduced`` and ``unreduced`` included."""
    spec = spec_of(sharding)
    used_axes = {axis for entry in spec.partitions for axis in mesh_axes(entry)}
    return frozenset(used_axes | spec.reduced | spec.unreduced)


def _difference(path: str, left: Any, right: Any) -> SpecDifference | None:
    if left is None or right is None:
        side = "left" if left is None else "right"
        return SpecDifference(path, left, right, f"the {side} side has no such array")
    one, other = canonical_spec(spec_of(left)), canonical_spec(spec_of(right))
    if one != other:
        return SpecDifference(path, left, right, f"{one} against {other}")
    if isinstance(left, NamedSharding) and isinstance(right, NamedSharding):
        kinds = left.memory_kind, right.memory_kind
        if kinds[0] != kinds[1]:
            return SpecDifference(path, left, right, f"memory {kinds[0]!r} against {kinds[1]!r}")
    return None
