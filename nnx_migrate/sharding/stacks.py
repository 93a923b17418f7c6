"""Stacks of layers around scans: the stacking axis leaves and rejoins value, names and record.

A variable of a stack holds the values of all layers along one axis, and says so (see
:mod:`nnx_migrate.sharding.scan_axis`). ``jax.lax.scan`` wants that axis in front and gives the body
slices without it::

    scanned, axes = remove_scan_axis(state)        # axis in front, names of one layer
    carry, changed = jax.lax.scan(body, carry, scanned)
    state = restore_scan_axis(changed, axes)       # axis and names back where they were

so that names always have the rank of their value, inside the body too, and metadata is the same
before and after. The body need return only what it changed; states with several stacks are split
first: ``nnx.split(module, in_stack("dense_layers"), in_stack("moe_layers"), ...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding.annotations import NAME_KEYS
from nnx_migrate.sharding.fitting import with_entries
from nnx_migrate.sharding.scan_axis import (
    INDEX_KEY,
    NAME_KEY,
    ScanAxis,
    insert,
    record,
    remove,
    scan_axes_of,
    stacked_names,
)

T = TypeVar("T")

Paths = Mapping[tuple[Any, ...], ScanAxis]


def in_stack(name: str | None) -> Callable[[Any, Any], bool]:
    """A filter for ``nnx.split`` and ``nnx.state``: variables whose last stacking axis is ``name``."""

    def select(path: Any, value: Any) -> bool:
        if not isinstance(value, nnx.Variable):
            return False
        axes = scan_axes_of(value.get_metadata())
        return bool(axes) and axes[-1].name == name

    return select


def record_scan_axis(tree: T, index: int, name: str | None) -> T:
    """Record a stacking axis that the values already have, and put its name into the names.

    For values stacked by ``jax.vmap`` or ``nnx.vmap`` with ``out_axes=index``. Names that have
    the axis already (``nnx.vmap`` with ``transform_metadata``) stay as they are.

    Args:
      tree: a state or module of which every Variable is stacked along axis ``index``.

    Raises:
      ValueError: a value has no axis ``index``, or the names have ``name`` at another place.
    """
    axis = ScanAxis(index, name)

    def one(path: tuple[Any, ...], variable: nnx.Variable[Any]) -> nnx.Variable[Any]:
        metadata = variable.get_metadata()
        axes = (*scan_axes_of(metadata), axis)
        rank = _rank(variable)
        if rank is not None and index >= rank:
            raise ValueError(f"expected a value with an axis {index} to record, found rank {rank}")

        def put(names: tuple[Any, ...]) -> tuple[Any, ...]:
            return stacked_names(names, (axis,), len(names) + 1 if rank is None else rank)

        return _with(variable, variable.get_raw_value(), _edit_metadata(metadata, put, axes))

    return _each_variable(one, tree)


def remove_scan_axis(tree: T) -> tuple[T, Paths]:
    """Bring the stacking axis of every Variable to the front, and take it out of names and record.

    Returns:
      The tree for ``jax.lax.scan``: values with their stacking axis in front, names without it;
      and the axis of each path, for :func:`restore_scan_axis`. Of several stacking axes the one
      that was added last is removed.

    Raises:
      ValueError: a Variable records no stacking axis, or its names do not have it where recorded.
    """
    axes: dict[tuple[Any, ...], ScanAxis] = {}

    def one(path: tuple[Any, ...], variable: nnx.Variable[Any]) -> nnx.Variable[Any]:
        metadata = variable.get_metadata()
        scan_axes = scan_axes_of(metadata)
        if not scan_axes:
            raise ValueError(
                "expected a record of the stacking axis, found none: record_scan_axis(state, "
                "index, name) makes one; leave out what is not stacked with in_stack(name)"
            )
        axes[path] = scan_axes[-1]
        value = jax.tree.map(lambda x: _move(x, scan_axes[-1].index, 0), variable.get_raw_value())
        new_metadata = _edit_metadata(
            metadata, lambda names: remove(names, scan_axes[-1]), scan_axes[:-1]
        )
        return _with(variable, value, new_metadata)

    return _each_variable(one, tree), axes


def restore_scan_axis(tree: T, axes: Paths | ScanAxis) -> T:
    """Put a leading stacking axis back where it was: the inverse of :func:`remove_scan_axis`.

    Args:
      tree: Variables stacked along axis 0 with the names of one layer; some of those that were
        removed will do.
      axes: what :func:`remove_scan_axis` returned, or one axis for all (fresh layers from
        ``jax.vmap``).

    Raises:
      ValueError: a Variable whose axis is not in ``axes``, or that is of too low a rank.
    """

    def one(path: tuple[Any, ...], variable: nnx.Variable[Any]) -> nnx.Variable[Any]:
        if not isinstance(axes, ScanAxis) and path not in axes:
            raise ValueError("expected a path that remove_scan_axis met, found a new one")
        axis = axes if isinstance(axes, ScanAxis) else axes[path]
        metadata = variable.get_metadata()
        value = jax.tree.map(lambda x: _move(x, 0, axis.index), variable.get_raw_value())
        scan_axes = (*scan_axes_of(metadata), axis)
        return _with(
            variable, value, _edit_metadata(metadata, lambda names: insert(names, axis), scan_axes)
        )

    return _each_variable(one, tree)


def _each_variable(
    edit: Callable[[tuple[Any, ...], nnx.Variable[Any]], nnx.Variable[Any]], tree: T
) -> T:
    def one(path: tuple[Any, ...], leaf: Any) -> Any:
        where = jax.tree_util.keystr(path, simple=True, separator="/")
        if not isinstance(leaf, nnx.Variable):
            raise TypeError(f"{where}: expected a Variable, found {type(leaf).__name__}")
        try:
            return edit(path, leaf)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error

    result: T = jax.tree_util.tree_map_with_path(
        one, tree, is_leaf=lambda node: isinstance(node, nnx.Variable)
    )
    return result


def _edit_metadata(
    metadata: Mapping[str, Any],
    edit: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    axes: tuple[ScanAxis, ...],
) -> dict[str, Any]:
    """The metadata with every list of names edited and ``axes`` for its record."""
    new_metadata = {k: v for k, v in metadata.items() if k not in (NAME_KEY, INDEX_KEY)}
    for key in NAME_KEYS:
        names = new_metadata.get(key)
        spec = names.spec if isinstance(names, NamedSharding) else names
        if isinstance(spec, PartitionSpec) and len(spec):
            raise ValueError(
                f"expected logical names under {key!r}, which move with a stacking axis, found the "
                f"resolved {names}"
            )
        if isinstance(names, str):
            names = (names,)
        if isinstance(names, tuple | list):
            new_metadata[key] = edit(tuple(names))
    return {**new_metadata, **record(axes)}


def _with(variable: nnx.Variable[Any], value: Any, metadata: dict[str, Any]) -> nnx.Variable[Any]:
    return type(variable).from_metadata(value, metadata)


def _rank(variable: nnx.Variable[Any]) -> int | None:
    parts = jax.tree.leaves(variable.get_raw_value())
    return max((part.ndim for part in parts), default=None)


def _move(array: Any, source: int, target: int) -> Any:
    """``jnp.moveaxis``, of abstract values too."""
    if max(source, target) >= array.ndim:
        raise ValueError(
            f"expected a value with an axis {max(source, target)} for the stack, found shape "
            f"{tuple(array.shape)}"
        )
    if source == target:
        return array
    if not isinstance(array, jax.ShapeDtypeStruct):
        return jnp.moveaxis(array, source, target)
    shape = list(array.shape)
    shape.insert(target, shape.pop(source))
    if not isinstance(array.sharding, NamedSharding):
        return array.update(shape=tuple(shape))
    entries = [*array.sharding.spec, *(None,) * (array.ndim - len(array.sharding.spec))]
    entries.insert(target, entries.pop(source))
    sharding = array.sharding.update(spec=with_entries(array.sharding.spec, entries))
    return array.update(shape=tuple(shape), sharding=sharding)
