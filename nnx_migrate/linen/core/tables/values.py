"""Stand-ins for values: what a table says about an array, without holding it."""

from __future__ import annotations

import abc
import dataclasses
import sys
from typing import Any

import jax
import jax.numpy as jnp
from flax.core import meta


class ValueRepresentation(abc.ABC):
    """A value as a cell of a table shows it."""

    @abc.abstractmethod
    def render(self) -> str:
        """The text of the cell, in rich's markup."""


@dataclasses.dataclass
class ArrayRepresentation(ValueRepresentation):
    """Shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_array(cls, x: Any) -> ArrayRepresentation:
        """Shape and dtype of anything that jax takes for an array.

        Raises:
          TypeError: jax takes ``x`` for none.
        """
        return cls(jnp.shape(x), jnp.result_type(x))

    @classmethod
    def render_array(cls, x: Any) -> str:
        """The text that stands for the array ``x``."""
        return cls.from_array(x).render()

    def render(self) -> str:
        """``float32[2,3]``, the dtype dimmed."""
        return f"[dim]{self.dtype}[/dim][{','.join(map(str, self.shape))}]"


@dataclasses.dataclass
class PartitionedArrayRepresentation(ValueRepresentation):
    """An array with names for its axes."""

    array_representation: ArrayRepresentation
    names: Any

    @classmethod
    def from_partitioned(cls, box: meta.Partitioned[Any]) -> PartitionedArrayRepresentation:
        """Shape, dtype and names of a box."""
        return cls(ArrayRepresentation.from_array(box.value), box.names)

    def render(self) -> str:
        """The array and its names, ``float32[2,3] P('embed', None)``."""
        return f"{self.array_representation.render()} [dim]P[/dim]{self.names}"


@dataclasses.dataclass
class ObjectRepresentation(ValueRepresentation):
    """Any other value: kept as it is."""

    obj: Any

    def render(self) -> str:
        """Its repr."""
        return repr(self.obj)


def is_representation(x: Any) -> bool:
    """Whether ``x`` is a stand-in, also one that a Linen module in the tree recorded."""
    theirs = sys.modules.get("flax.linen.summary")
    linens: tuple[type, ...] = () if theirs is None else (theirs._ValueRepresentation,)
    return isinstance(x, (ValueRepresentation, *linens))


def represent(x: Any) -> ValueRepresentation:
    """The stand-in of one leaf: Python's numbers keep their value, arrays only shape and dtype."""
    if x is None or isinstance(x, int | float):
        return ObjectRepresentation(x)
    if isinstance(x, meta.Partitioned):
        return PartitionedArrayRepresentation.from_partitioned(x)
    try:
        return ArrayRepresentation.from_array(x)
    except (TypeError, ValueError, AttributeError):  # no array: a string, an object of one's own
        return ObjectRepresentation(x)


def represent_tree(tree: Any) -> Any:
    """``tree`` with every leaf replaced by its stand-in; None and boxes are leaves."""
    return jax.tree.map(
        represent, tree, is_leaf=lambda x: x is None or isinstance(x, meta.Partitioned)
    )


def abstract(representation: Any) -> Any:
    """What a call can be traced with in place of the value that ``representation`` stands for.

    Raises:
      TypeError: ``representation`` is no stand-in.
    """
    if not is_representation(representation):
        raise TypeError(
            f"expected a stand-in for a value, got {representation!r} of {type(representation).__name__}"
        )
    if hasattr(representation, "obj"):
        return representation.obj
    array = getattr(representation, "array_representation", representation)
    return jax.ShapeDtypeStruct(array.shape, array.dtype)
