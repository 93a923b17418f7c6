"""The records of axis names and what is read from them (flax 0.12.8, linen/partitioning.py)."""

from collections.abc import Callable
from typing import Any

import jax
from flax import struct
from flax.core.frozen_dict import freeze, unfreeze
from flax.traverse_util import flatten_dict, unflatten_dict
from flax.typing import LogicalPartitionSpecPytree
from jax.sharding import PartitionSpec

from nnx_migrate.linen.spmd import _is_logical_spec

_SUFFIX = "_axes"


@struct.dataclass
class AxisMetadata:
    """The axis names of one variable; a pytree without leaves."""

    names: LogicalPartitionSpecPytree = struct.field(pytree_node=False)


def is_record(value: Any) -> bool:
    """Whether ``value`` holds axis names: ours, or what a Linen module recorded."""
    kind = type(value)
    name = (kind.__module__, kind.__name__)
    return kind is AxisMetadata or name == ("flax.linen.partitioning", "AxisMetadata")


def same_names(old_names: Any, new: Any) -> AxisMetadata:
    """The names that are sown: those of before, if there are any.

    Raises:
      TypeError: ``new`` is no :class:`AxisMetadata`.
      ValueError: the names differ from those sown before.
      AssertionError: something else was sown before.
    """
    if not is_record(new):
        raise TypeError(f"expected names as AxisMetadata, found {type(new).__name__}")
    if is_record(old_names):
        if old_names.names != new.names:
            raise ValueError(
                f"If axis names are sown twice, expected them to match. Got {old_names} and {new}."
            )
    elif old_names:
        raise AssertionError(f"expected axis names or nothing, found {old_names}")
    record: AxisMetadata = new
    return record


def map_names(fn: Callable[[tuple[Any, ...]], Any], names: Any) -> Any:
    """``fn`` of the names of each array; None where an array has none."""
    return jax.tree.map(
        lambda one: None if one is None else fn(one), names, is_leaf=_is_logical_spec
    )


def map_metadata(fn: Callable[[AxisMetadata], Any], tree: Any) -> Any:
    """``fn`` of each record in a tree; other leaves as they are."""

    return jax.tree.map(lambda leaf: fn(leaf) if is_record(leaf) else leaf, tree, is_leaf=is_record)


def get_axis_names(axes_metadata: Any) -> Any:
    """The records of one collection as PartitionSpecs of logical names.

    Returns:
      a FrozenDict with the paths of the variables themselves, without the suffix ``_axes``.
    """
    named = {}
    for path, metadata in flatten_dict(unfreeze(axes_metadata)).items():
        # A name may hold slashes: those below it are paths of their own.
        whole = "/".join(path).removesuffix(_SUFFIX)
        names = map_names(lambda one: PartitionSpec(*one), metadata.names)
        named[tuple(whole.split("/"))] = names
    return freeze(unflatten_dict(named))
