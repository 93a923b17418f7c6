"""The axis along which layers are stacked: its record on a variable, and its place in the names.

A variable of a stack carries the axis's name under ``partition_name`` (``nnx.PARTITION_NAME``) and
its index under ``param_scan_axis``. A variable that was stacked twice carries a tuple under each,
the axis that was added last coming last. Names move with values: an axis that is taken off a value
is taken out of its names and its record too (:mod:`nnx_migrate.sharding.stacks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The value of nnx.PARTITION_NAME in flax 0.12.8 and 0.12.12 (nnx/spmd.py).
NAME_KEY = "partition_name"
INDEX_KEY = "param_scan_axis"


@dataclass(frozen=True, slots=True)
class ScanAxis:
    """A stacking axis of a value: its index in the stacked value, and its logical name or None."""

    index: int
    name: str | None

    def __post_init__(self) -> None:
        if self.index < 0:
            raise ValueError(
                f"scan axis {self.name!r}: expected an index counted from the front, found "
                f"{self.index}. Add the rank of the stacked value."
            )


def scan_axes_of(metadata: Mapping[str, Any]) -> tuple[ScanAxis, ...]:
    """The stacking axes that a variable's metadata records, the one added last coming last.

    A name without an index is no record: it does not say where to insert the name, which must
    stand in the variable's names already (:func:`require_scan_index`).

    Raises:
      ValueError: an index without a name, or tuples of different lengths.
    """
    if INDEX_KEY not in metadata or metadata[INDEX_KEY] is None:
        return ()
    if NAME_KEY not in metadata:
        raise ValueError(
            f"expected the name of the scan axis under metadata {NAME_KEY!r} beside its index "
            f"{metadata[INDEX_KEY]!r} under {INDEX_KEY!r}, found none"
        )
    indices, names = metadata[INDEX_KEY], metadata[NAME_KEY]
    if isinstance(indices, int):
        indices, names = (indices,), (names,)
    if not isinstance(names, tuple) or len(names) != len(indices):
        raise ValueError(
            f"expected as many scan axis names under {NAME_KEY!r} as indices under {INDEX_KEY!r}, "
            f"found {names!r} and {indices!r}"
        )
    return tuple(ScanAxis(index, name) for index, name in zip(indices, names, strict=True))


def require_scan_index(metadata: Mapping[str, Any], names: Any) -> None:
    """Refuse a stacking axis of which nothing says where it is.

    Raises:
      ValueError: it has a name and no index, and logical ``names`` lack it.
    """
    name = metadata.get(NAME_KEY)
    if name is None or metadata.get(INDEX_KEY) is not None or not isinstance(names, tuple):
        return
    if isinstance(name, str) and name not in names:
        raise ValueError(
            f"expected the stacking axis {name!r} (metadata {NAME_KEY!r}) among the names, or its "
            f"index under {INDEX_KEY!r}, found {names!r} and no index: record_scan_axis records both"
        )


def record(axes: Sequence[ScanAxis]) -> dict[str, Any]:
    """The metadata that records ``axes``; nothing for none, a plain pair for one."""
    if not axes:
        return {}
    if len(axes) == 1:
        return {NAME_KEY: axes[0].name, INDEX_KEY: axes[0].index}
    return {NAME_KEY: tuple(a.name for a in axes), INDEX_KEY: tuple(a.index for a in axes)}


def stacked_names(names: tuple[Any, ...], axes: Sequence[ScanAxis], rank: int) -> tuple[Any, ...]:
    """Names with every axis of ``axes`` at its place: inserted, or found there already.

    Args:
      names: logical names of the value, of the stacked or of the unstacked one.
      rank: number of dimensions of the stacked value.

    Raises:
      ValueError: an axis stands at another place than recorded, some of several axes stand in the
        names and others do not, or an axis without a name leaves it open.
    """
    if not axes:
        return names
    if _has_axes(names, axes, rank):
        for axis, place in zip(axes, final_places(axes), strict=True):
            _check_place(names, axis, place)
        return names
    for axis in axes:
        names = insert(names, axis)
    return names


def final_places(axes: Sequence[ScanAxis]) -> list[int]:
    """Where each axis ends up once the later ones are inserted too."""
    places: list[int] = []
    for axis in axes:
        places = [place + (axis.index <= place) for place in places]
        places.append(axis.index)
    return places


def insert(names: tuple[Any, ...], axis: ScanAxis) -> tuple[Any, ...]:
    """``names`` with the axis's name at its index, None for dimensions in between without a name."""
    names += (None,) * (axis.index - len(names))
    return (*names[: axis.index], axis.name, *names[axis.index :])


def remove(names: tuple[Any, ...], axis: ScanAxis) -> tuple[Any, ...]:
    """``names`` without the axis.

    Raises:
      ValueError: the axis is not where it was recorded.
    """
    _check_place(names, axis, axis.index)
    return (*names[: axis.index], *names[axis.index + 1 :])


def _has_axes(names: tuple[Any, ...], axes: Sequence[ScanAxis], rank: int) -> bool:
    """Whether the names are those of the stacked value."""
    present = {axis.name in names for axis in axes if axis.name is not None}
    if len(present) > 1:
        raise ValueError(
            f"expected all stacking axes {[axis.name for axis in axes]} in the names or none of "
            f"them, found {names!r}"
        )
    if present:
        return present.pop()
    if len(names) not in (rank, rank - len(axes)):
        raise ValueError(
            f"expected {rank} names, or {rank - len(axes)} without the unnamed stacking axis, "
            f"found {names!r}: which it is cannot be told. Give every dimension a name or None."
        )
    return len(names) == rank


def _check_place(names: tuple[Any, ...], axis: ScanAxis, place: int) -> None:
    found = names[place] if place < len(names) else None
    if found != axis.name or place >= len(names):
        raise ValueError(
            f"expected the stacking axis {axis.name!r} at position {place} of the names, as "
            f"recorded under {INDEX_KEY!r}, found {names!r}"
        )
