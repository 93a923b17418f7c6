"""`Size`: which input of which call a constructor argument is the size of."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from nnx_migrate.linen.core.sizes.arrays import is_array

Path = tuple[str, ...]
_STEP = re.compile(r"\.(\w+)|\[(-?\d+)\]")


class UnknownSize(TypeError):
    """A size that neither the call nor the variables show."""


@dataclasses.dataclass(frozen=True)
class Size:
    """A constructor argument that comes from an input of the first call.

    ``argument``: the input's name, or a part of it (``"carry[1]"``, ``"graphs.nodes"``); None for the
    first. ``axis``: which of its dimensions; None for the whole shape, or those of all arrays in the input.
    ``of``: the scope path of a submodule, when it is that one's input. ``method``: which call has the
    input. ``fact``: not a size but whether the input is ``"given"``, or its ``"truth"``.

    >>> lazy(MlpBlock, in_features=Size(axis=-1), length=Size("tokens", 1))
    """

    argument: str | None = None
    axis: int | None = -1
    of: str = ""
    method: str = "__call__"
    fact: str | None = None

    def read(self, inputs: Mapping[str, Any]) -> Any:
        """The size in the inputs of a call; None where the input is not given, or has no such axis."""
        value = _part(inputs, self.argument)
        if self.fact == "given":
            return value is not None
        if self.fact == "truth":
            return bool(value)
        if self.axis is None:
            return _shapes(value)
        shape = _shape(value)
        if shape is None:
            return None
        return shape[self.axis] if -len(shape) <= self.axis < len(shape) else None

    def read_at(self, path: Path, inputs: Mapping[str, Any]) -> Any:
        """The size in the inputs of the module at a scope path; None where they do not show it."""
        return self.read(inputs) if self.fits(path) else None

    @property
    def path(self) -> Path:
        """The steps of ``of``."""
        return tuple(self.of.split("/")) if self.of else ()

    @property
    def is_of_part(self) -> bool:
        """Whether it is the size of a submodule's input."""
        return bool(self.path) and self.fact is None

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole shape of an input of the module itself."""
        return self.fact is None and self.axis is None and not self.path

    @property
    def shows_nowhere(self) -> bool:
        """Whether variables do not show it: a whole shape."""
        return self.fact is None and self.axis is None

    def fits(self, path: Path) -> bool:
        """Whether the inputs of the submodule at a scope path may show it."""
        return self.path == path


def _shapes(value: Any) -> Any:
    """The shape of an input, or of each array that it holds; None where it holds anything else."""
    leaves, tree = jax.tree.flatten(value)
    if not any(map(is_array, leaves)) or is_array(value):
        return _shape(value)
    shapes = list(map(_shape, leaves))
    return None if None in shapes else jax.tree.unflatten(tree, shapes)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an array, a number or lists of numbers; other inputs have none."""
    if isinstance(value, int | float | complex | list | tuple):
        try:
            return np.shape(value)
        except (TypeError, ValueError):  # of unlike items, or of what a transform traces
            return None
    shape = getattr(value, "shape", None)
    return shape if isinstance(shape, tuple) else None


def _part(inputs: Mapping[str, Any], argument: str | None) -> Any:
    if argument is None:
        return next(iter(inputs.values()), None)
    name = re.match(r"\w+", argument)
    assert name is not None
    value = inputs.get(name.group())
    for attribute, item in _STEP.findall(argument[name.end() :]):
        if value is None:
            return None
        value = part_at(value, attribute or int(item))
    return value


def part_at(value: Any, step: str | int) -> Any:
    """A field or an item; what has to be computed for it (a property, a row) only as a shape."""
    if isinstance(step, int):
        has_rows = isinstance(value, jax.ShapeDtypeStruct) and value.shape
        return jax.eval_shape(lambda one: one[step], value) if has_rows else value[step]
    if step in properties_of(value):
        return jax.eval_shape(lambda one: getattr(one, step), value)
    return getattr(value, step)


def properties_of(value: Any) -> tuple[str, ...]:
    """What the class of an input computes under the name of a field."""
    bases = type(value).__mro__
    return tuple(
        name for one in bases for name, kept in vars(one).items() if isinstance(kept, property)
    )


def inputs_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> dict[str, Any]:
    """The inputs of a method by their names, ``self`` left out; defaults where they are left out."""
    try:
        bound = inspect.signature(function).bind(None, *args, **kwargs)
    except TypeError as error:  # as Python says it of a call: whose arguments they are
        raise TypeError(f"{function.__qualname__}() {error}") from None
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])
