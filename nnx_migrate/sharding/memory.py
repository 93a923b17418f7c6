"""How many bytes of a state each device holds, and how many are not sharded at all."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import NamedSharding

from nnx_migrate.sharding.resolve import mesh_axes


@dataclass(frozen=True, slots=True)
class ArrayBytes:
    """One array: its bytes, its bytes per device, and whether any axis that counts shards it."""

    path: str
    shape: tuple[int, ...]
    total: int
    per_device: int
    sharded: bool


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes of all arrays, in the order of the tree.

    Attributes:
      arrays: one entry each.
      over: the mesh axes that count as sharding.
    """

    arrays: tuple[ArrayBytes, ...]
    over: tuple[str, ...]

    @property
    def total(self) -> int:
        """Bytes of one copy of everything."""
        return sum(one.total for one in self.arrays)

    @property
    def per_device(self) -> int:
        """Bytes on each device; all devices hold the same."""
        return sum(one.per_device for one in self.arrays)

    @property
    def unsharded(self) -> tuple[ArrayBytes, ...]:
        """The arrays no axis that counts shards, largest first."""
        whole = (one for one in self.arrays if not one.sharded)
        return tuple(sorted(whole, key=lambda one: (-one.total, one.path)))

    @property
    def unsharded_bytes(self) -> int:
        """Bytes of the unsharded arrays."""
        return sum(one.total for one in self.unsharded)

    @property
    def unsharded_share(self) -> float:
        """Unsharded bytes by all bytes; 0 if there are none."""
        return self.unsharded_bytes / self.total if self.total else 0.0


def memory_report(
    arrays: Any, shardings: Any = None, *, over: Collection[str] | str | None = None
) -> MemoryReport:
    """Bytes of every array of a tree, by its sharding.

    An array counts as sharded when one of the axes ``over`` with more than one device splits it.
    (MaxText's check divides *elements* by *bytes* here, and so lets four times as much pass for
    float32.) Types of less than a byte count as a byte.

    Args:
      arrays: arrays or ShapeDtypeStructs in any containers, Variables included.
      shardings: the same tree with a NamedSharding for each; without: the arrays' own.
      over: mesh axes that count, or one; without: all but ``data`` and ``diloco``, whose devices hold
        copies by design.

    Raises:
      TypeError: an array has no NamedSharding.
      ValueError: the trees differ, or a dimension is not divisible by its mesh axes.
    """
    found, _ = jax.tree_util.tree_flatten_with_path(arrays)
    if shardings is None:
        leaf_shardings = [getattr(leaf, "sharding", None) for _, leaf in found]
    else:
        leaf_shardings = jax.tree.leaves(
            jax.tree.map(lambda _, sharding: sharding, arrays, shardings)
        )
    if over is None:
        named = [one for one in leaf_shardings if isinstance(one, NamedSharding)]
        over = {axis for one in named for axis in one.mesh.axis_names} - {"data", "diloco"}
    over = mesh_axes(over) if isinstance(over, str) else over
    entries = tuple(
        _bytes(jax.tree_util.keystr(path, simple=True, separator="/"), leaf, sharding, over)
        for (path, leaf), sharding in zip(found, leaf_shardings, strict=True)
    )
    return MemoryReport(entries, tuple(sorted(over)))


def check_sharded(report: MemoryReport, most: float) -> None:
    """Refuse a state of whose bytes more than the share ``most`` (0 to 1) is not sharded.

    Raises:
      ValueError: too much is unsharded; names the largest arrays.
    """
    if not report.arrays:
        raise ValueError("expected arrays to check, found none")
    if report.unsharded_share > most:
        largest = "\n".join(
            f"  {one.path} {one.shape}: {one.total} bytes" for one in report.unsharded[:10]
        )
        raise ValueError(
            f"expected at most {most:.2%} of the bytes unsharded over {', '.join(report.over)}, "
            f"found {report.unsharded_share:.2%} ({report.unsharded_bytes} of {report.total}):\n"
            f"{largest}"
        )


def _bytes(path: str, array: Any, sharding: Any, over: Collection[str]) -> ArrayBytes:
    if not isinstance(sharding, NamedSharding):
        raise TypeError(
            f"{path}: expected a NamedSharding, found {sharding!r}. Pass the shardings, as "
            "construct_named_sharding gives them."
        )
    size = array.dtype.itemsize
    try:
        shard = sharding.shard_shape(array.shape)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    sizes = sharding.mesh.shape
    split = {axis for entry in sharding.spec.partitions for axis in mesh_axes(entry)}
    return ArrayBytes(
        path,
        tuple(array.shape),
        math.prod(array.shape) * size,
        math.prod(shard) * size,
        any(axis in over and sizes[axis] > 1 for axis in split),
    )
