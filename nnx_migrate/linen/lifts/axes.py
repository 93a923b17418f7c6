"""Axes of variables, keys and arguments: what ``scan`` and ``vmap`` have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import traceback_util
from flax.core import meta
from flax.typing import In, Out

from .pack import Group, Groups

traceback_util.register_exclusion(__file__)


def filters_and_values(mapping: Mapping[Any, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Filters of a mapping from filters to something, and what they map to."""
    return tuple(mapping.keys()), tuple(mapping.values())


def in_and_out(axes: Mapping[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Axes of collections on their way in and out; ``In`` and ``Out`` go one way only."""
    ways = ({k: v for k, v in axes.items() if not isinstance(v, skip)} for skip in (Out, In))
    inward, outward = (
        {k: v.axis if isinstance(v, In | Out) else v for k, v in way.items()} for way in ways
    )
    return inward, outward


def size_along(axis: Any, tree: Any) -> Any:
    """Size of the first array of a tree along an axis; ``()``, a tree of nothing, if it has none."""
    leaves = jax.tree.leaves(tree)
    return leaves[0].shape[axis] if leaves else ()


def one_size(sizes: Any, length: int | None, *, differ: str, missing: str) -> int:
    """The one number that a tree of sizes holds, or the size that was given.

    Raises:
      ValueError: the sizes differ (message ``differ``), or there are none and none was given.
    """
    found = set(jax.tree.leaves(sizes))
    if len(found) > 1:
        raise ValueError(f"{differ}: {found}")
    if length is not None:
        return length
    if not found:
        raise ValueError(missing)
    (size,) = found
    return int(size)


def split_keys(groups: Groups, splits: Sequence[bool], split: Callable[[Any], Any]) -> Groups:
    """Groups of keys with those that are to differ from step to step split."""
    return tuple(
        map_keys(split, group) if is_split else group
        for group, is_split in zip(groups, splits, strict=True)
    )


def map_keys(fn: Callable[[Any], Any], tree: Any) -> Any:
    """``fn`` of every key of a tree; suffixes that are yet to be folded in stay."""

    def is_key(x: Any) -> bool:
        return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)

    return jax.tree.map(fn, tree, is_leaf=is_key)


def without_axes(groups: Sequence[Group], axes: Sequence[Any], params: Any) -> tuple[Any, ...]:
    """Groups whose boxes (``nn.Partitioned`` and its like) no longer name the lifted axis."""
    return tuple(
        group if axis is None else meta.remove_axis(group, axis, params)
        for group, axis in zip(groups, axes, strict=True)
    )


def with_axes(groups: Sequence[Group], axes: Sequence[Any], params: Any) -> tuple[Any, ...]:
    """Groups whose boxes name the lifted axis again."""
    return tuple(
        group if axis is None else meta.add_axis(group, axis, params)
        for group, axis in zip(groups, axes, strict=True)
    )


def warn_of_kwargs(lift: str, kwargs: Mapping[str, Any]) -> None:
    """Says that keyword arguments do not reach the function, as Linen does."""
    if kwargs:
        names = ", ".join(kwargs)
        message = f'kwargs are not supported in {lift}, so "{names}" is(are) ignored'
        warnings.warn(message, RuntimeWarning, stacklevel=3)
