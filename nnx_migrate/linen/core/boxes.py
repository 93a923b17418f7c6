"""Values in boxes of names as NNX Variables, and back."""

from __future__ import annotations

from typing import Any

import jax
from flax import nnx
from flax.core import meta
from flax.nnx import variablelib

from nnx_migrate.linen.core.static import Static
from nnx_migrate.sharding.boxes import metadata_of

BOX = "linen_box"  # the boxes themselves, emptied: whatever their class, they come back the same


def to_variable(collection: str, value: Any) -> nnx.Variable[Any]:
    """A Variable of the collection's type; names of a box become its metadata."""
    kind = variablelib.variable_type_from_name(collection, allow_register=True)
    if not any(map(meta.is_axis_metadata, jax.tree.leaves(value, is_leaf=meta.is_axis_metadata))):
        return kind(value)
    metadata: dict[str, Any] = {BOX: Static(_boxes_of(value))}
    if meta.is_axis_metadata(value):
        metadata |= metadata_of(value)
    return kind(contents_of(value), **metadata)


def from_variable(variable: nnx.Variable[Any]) -> Any:
    """The value of a Variable in its boxes."""
    value = variable.get_value()
    static = variable.get_metadata().get(BOX)
    if static is None:
        return value
    structure: Any
    boxes, structure = jax.tree.flatten(static.value, is_leaf=_is_slot)
    contents = structure.flatten_up_to(value)
    values = [
        box.replace_boxed(content) if meta.is_axis_metadata(box) else content
        for box, content in zip(boxes, contents, strict=True)
    ]
    return structure.unflatten(values)


def contents_of(value: Any) -> Any:
    """The contents of the boxes in ``value``, without the constraints that `unbox` may set."""
    return jax.tree.map(_content, value, is_leaf=meta.is_axis_metadata)


def _content(one: Any) -> Any:
    if not meta.is_axis_metadata(one):
        return one
    return one.value if hasattr(one, "value") else one.unbox()


def _boxes_of(value: Any) -> Any:
    """The boxes in ``value`` without contents; None where there is no box."""
    return jax.tree.map(
        lambda one: one.replace_boxed(None) if meta.is_axis_metadata(one) else None,
        value,
        is_leaf=meta.is_axis_metadata,
    )


def _is_slot(value: Any) -> bool:
    return value is None or meta.is_axis_metadata(value)
