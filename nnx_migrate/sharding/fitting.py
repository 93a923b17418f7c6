"""Whether a spec fits an array: not longer than its rank, and every dimension divisible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from jax.sharding import PartitionSpec

from nnx_migrate.sharding.resolve import mesh_axes

# What to do with a spec that does not fit: say so, or drop what does not fit.
Misfit = Literal["raise", "drop"]
MISFITS: tuple[str, ...] = get_args(Misfit)


def refuse_other_words(option: str, word: object, words: Sequence[str]) -> None:
    """A word that is misspelt would choose in silence what the last of the words does.

    Raises:
      ValueError: ``word`` is none of the words.
    """
    if word not in words:
        choices = " or ".join(map(repr, words))
        raise ValueError(f"expected {option} to be {choices}, found {word!r}")


def fit_spec(
    spec: PartitionSpec, shape: Sequence[int], sizes: Mapping[str, int], misfit: Misfit = "raise"
) -> PartitionSpec:
    """The spec, if it fits an array of ``shape``.

    Args:
      sizes: number of devices along each mesh axis.
      misfit: "drop" shortens a spec that is longer than the rank, and replicates a dimension that
        its mesh axes do not divide, all of them; "raise" refuses both.

    Raises:
      ValueError: the spec does not fit and ``misfit`` is "raise", or names an axis that the mesh
        does not have.
    """
    if len(spec) > len(shape) and misfit == "raise":
        raise ValueError(
            f"expected at most {len(shape)} entries for shape {tuple(shape)}, found {len(spec)} in "
            f"{spec}. Give one logical axis name per dimension, or pass misfit='drop'."
        )
    entries = [
        _fit_entry(entry, dim, shape, sizes, misfit)
        for dim, entry in enumerate(spec.partitions[: len(shape)])
    ]
    return spec if spec.partitions == tuple(entries) else with_entries(spec, entries)


def with_entries(spec: PartitionSpec, entries: Sequence[Any]) -> PartitionSpec:
    """A spec of ``entries`` that keeps what else ``spec`` says (``reduced``, ``unreduced``)."""
    new_spec: PartitionSpec = spec.update(partitions=entries)
    return new_spec


def _fit_entry(
    entry: Any, dim: int, shape: Sequence[int], sizes: Mapping[str, int], misfit: Misfit
) -> Any:
    parts = 1
    for axis in mesh_axes(entry):
        if axis not in sizes:
            raise ValueError(
                f"expected mesh axes among {tuple(sizes)} in dimension {dim}, found {axis!r}: a "
                "PartitionSpec is taken as resolved; give logical names as a tuple"
            )
        parts *= sizes[axis]
    if shape[dim] % parts == 0:
        return entry
    if misfit == "drop":
        return None
    raise ValueError(
        f"expected a size divisible by {parts} (mesh axes {entry!r}) in dimension {dim}, found "
        f"{shape[dim]} in shape {tuple(shape)}. Change the size, the rules or the mesh, or pass "
        "misfit='drop' to replicate such dimensions."
    )
