"""A variable as code in a module holds it: read and set through the scope it lives in."""

from __future__ import annotations

from typing import Any

import jax
from flax.core import meta
from flax.ids import uuid


class Variable:
    """A variable of a scope, read and set through `value`."""

    def __init__(self, scope: Any, collection: str, name: str, unbox: bool) -> None:
        self._id = uuid()
        self.scope = scope
        self.collection = collection
        self.name = name
        self.unbox = unbox

    @property
    def value(self) -> Any:
        """The value, without its boxes unless they were asked for."""
        contents = self.scope.get_variable(self.collection, self.name)
        return meta.unbox(contents) if self.unbox else contents

    @value.setter
    def value(self, value: Any) -> None:
        if self.unbox:
            contents = self.scope.get_variable(self.collection, self.name)
            value = _boxed_like(contents, value)
        self.scope.put_variable(self.collection, self.name, value)

    def is_mutable(self) -> bool:
        """Whether `value` may be set."""
        mutable: bool = self.scope.is_mutable_collection(self.collection)
        return mutable


def _boxed_like(old_value: Any, value: Any) -> Any:
    """``value`` in the boxes of ``old_value``, where both have the same structure."""
    structure: Any
    boxes, structure = jax.tree.flatten(old_value, is_leaf=meta.is_axis_metadata)
    if not any(map(meta.is_axis_metadata, boxes)):
        return value
    if jax.tree.structure(value, is_leaf=meta.is_axis_metadata) != structure:
        return value
    return meta.replace_boxed(old_value, value)
