"""The axis along which a variable holds several layers: how its metadata records it.

A stacked variable says under ``param_scan_axis`` at which index the axis stands and under
``partition_name`` (``nnx.PARTITION_NAME``) what it is called, None for a nameless one; stacked twice,
it says a tuple under each, the axis added last coming last. Logical names of the value get the
axis's name inserted at that index, as ``linen.Partitioned.add_axis`` does (flax 0.12.8,
core/meta.py).
"""

from __future__ import annotations

from typing import Any

from flax import nnx
from jax.sharding import PartitionSpec

from nnx_migrate.nn.variables.partitioning import LOGICAL_AXES

NAME_KEY = str(nnx.PARTITION_NAME)
INDEX_KEY = "param_scan_axis"
# Every key under which a variable may have names, one per dimension.
_NAMES = (LOGICAL_AXES, "out_sharding", "sharding_names", "sharding")

Metadata = dict[str, Any]


def with_axis(metadata: Metadata, index: int, name: str | None) -> Metadata:
    """The metadata of the stacked value."""
    edited = dict(metadata)
    for key in _names(metadata):
        names = tuple(metadata[key])
        names += (None,) * (index - len(names))
        edited[key] = _alike(metadata[key], (*names[:index], name, *names[index:]))
    return {**edited, **_record((*_recorded(metadata), (index, name)))}


def without_axis(metadata: Metadata) -> Metadata:
    """The metadata of one layer's value: the axis that was added last goes.

    Values without names need no record (what is sown during a call has none).

    Raises:
      ValueError: names without a record, or names that do not have the axis where it was recorded.
    """
    recorded_axes = _recorded(metadata)
    if not recorded_axes and not has_names(metadata):
        return metadata
    if not recorded_axes:
        raise ValueError(
            f"expected a record of the stacking axis under {INDEX_KEY!r}, found {sorted(metadata)}: "
            "build the module with nnm.scan or nnm.vmap"
        )
    index, name = recorded_axes[-1]
    edited = {k: v for k, v in metadata.items() if k not in (NAME_KEY, INDEX_KEY)}
    for key in _names(metadata):
        names = tuple(metadata[key])
        if index >= len(names) or names[index] != name:
            raise ValueError(
                f"expected the stacking axis {name!r} at position {index} of {key}={names!r}"
            )
        edited[key] = _alike(metadata[key], (*names[:index], *names[index + 1 :]))
    return {**edited, **_record(recorded_axes[:-1])}


def has_names(metadata: Metadata) -> bool:
    """Whether the metadata names the dimensions of the value."""
    return bool(_names(metadata))


def _names(metadata: Metadata) -> list[str]:
    return [key for key in _NAMES if isinstance(metadata.get(key), (tuple, list, PartitionSpec))]


def _alike(old: Any, names: tuple[Any, ...]) -> Any:
    return PartitionSpec(*names) if isinstance(old, PartitionSpec) else names


def _recorded(metadata: Metadata) -> tuple[tuple[int, str | None], ...]:
    index, name = metadata.get(INDEX_KEY), metadata.get(NAME_KEY)
    if index is None:
        return ()
    return (
        tuple(zip(index, name or (), strict=True)) if isinstance(index, tuple) else ((index, name),)
    )


def _record(axes: tuple[tuple[int, str | None], ...]) -> Metadata:
    if not axes:
        return {}
    if len(axes) == 1:
        return {INDEX_KEY: axes[0][0], NAME_KEY: axes[0][1]}
    return {INDEX_KEY: tuple(one for one, _ in axes), NAME_KEY: tuple(one for _, one in axes)}
