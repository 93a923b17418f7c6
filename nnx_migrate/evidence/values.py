"""How constructor fields and call arguments are written down: JSON, with ``"$"`` marking kinds.

Numbers, booleans and None stand for themselves; everything else is an object with a kind:

* ``tuple``, ``list``, ``set``, ``dict`` with ``items``; ``dataclass``, ``module``, ``object`` with
  ``module``, ``name`` and ``fields``;
* ``name``: a class or function, by module and qualified name; ``call``: what such a function
  returned for ``keywords``; ``partial``; ``enum``; ``dtype``;
* ``text``: a string that also stands in the recorded source code; ``withheld``: any other string;
* ``array`` and ``key``: shape and dtype, never values; ``default``: the field's default;
  ``opaque``: none of these, by its type's name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

EncodedValue = Any  # JSON: None, bool, int, float, or a dict with "$"
Shape = tuple[int, ...]

HAS_ITEMS = ("tuple", "list")
HAS_FIELDS = ("dataclass", "module", "object")


class NotThere(Exception):
    """The recorded value has no such part, or it was not written down."""


def kind_of(value: EncodedValue) -> str:
    """The kind of an encoded value; "plain" for one that stands for itself."""
    return str(value["$"]) if isinstance(value, Mapping) else "plain"


def part(value: EncodedValue, step: ast.expr | str) -> EncodedValue:
    """One attribute (a string) or item (a literal node) of an encoded value. Raises NotThere."""
    kind = kind_of(value)
    if isinstance(step, str):
        if kind in HAS_FIELDS and step in value["fields"]:
            return value["fields"][step]
        raise NotThere(step)
    try:
        key = ast.literal_eval(step)
    except (ValueError, TypeError) as error:
        raise NotThere(ast.unparse(step)) from error
    if kind in HAS_ITEMS and isinstance(key, int):
        items = value["items"]
        if -len(items) <= key < len(items):
            return items[key]
    if kind == "dict":
        for name, item in value["items"]:
            if name == key:
                return item
    raise NotThere(ast.unparse(step))


def numbers(value: EncodedValue, path: str) -> Iterator[tuple[str, int | float | bool]]:
    """Every number inside a value with the Python text that reads it (``self.cfg.sizes[0]``)."""
    for place, one in _innermost(value, path):
        if isinstance(one, bool | int | float):
            yield place, one


def arrays(value: EncodedValue, path: str) -> Iterator[tuple[str, Shape]]:
    """Every array inside a value with its place (``batch['x']``, ``graph.nodes``) and shape."""
    for place, one in _innermost(value, path):
        if kind_of(one) == "array":
            yield place, tuple(one["shape"])


def _innermost(value: EncodedValue, path: str) -> Iterator[tuple[str, EncodedValue]]:
    """Every part of a value that has no parts itself, with the text that reads it."""
    kind = kind_of(value)
    if kind in HAS_ITEMS:
        for index, item in enumerate(value["items"]):
            yield from _innermost(item, f"{path}[{index}]")
    elif kind == "dict":
        for name, item in value["items"]:
            yield from _innermost(item, f"{path}[{name!r}]")
    elif kind in HAS_FIELDS:
        for name, item in value["fields"].items():
            yield from _innermost(item, f"{path}.{name}")
    else:
        yield path, value


def replace_numbers(
    value: EncodedValue, path: str, changes: Mapping[str, int | float]
) -> EncodedValue:
    """The value with the numbers and array axes that ``changes`` names replaced."""
    if isinstance(value, bool | int | float):
        return changes.get(path, value)
    kind = kind_of(value)
    if kind == "array":
        rank = len(value["shape"])
        sizes = enumerate(value["shape"])
        shape = [changes.get(dimension(path, axis - rank), size) for axis, size in sizes]
        return {**value, "shape": shape}
    if kind in HAS_ITEMS:
        items = enumerate(value["items"])
        return {
            **value,
            "items": [replace_numbers(one, f"{path}[{i}]", changes) for i, one in items],
        }
    if kind == "dict":
        pairs = [
            [name, replace_numbers(one, f"{path}[{name!r}]", changes)]
            for name, one in value["items"]
        ]
        return {**value, "items": pairs}
    if kind in HAS_FIELDS:
        parts = value["fields"].items()
        return {
            **value,
            "fields": {
                name: replace_numbers(one, f"{path}.{name}", changes) for name, one in parts
            },
        }
    return value


def dimension(path: str, axis: int) -> str:
    """The text that reads one axis of an array."""
    return f"{path}.shape[{axis}]"


def dimensions(arguments: Mapping[str, EncodedValue]) -> dict[str, int]:
    """Every axis of every array argument, counted from the end."""
    return {
        dimension(path, axis - len(shape)): size
        for name, value in arguments.items()
        for path, shape in arrays(value, name)
        for axis, size in enumerate(shape)
    }


def unreadable(value: EncodedValue) -> Iterator[str]:
    """Kinds inside a value that cannot be built again, for messages."""
    kind = kind_of(value)
    if kind == "withheld":
        yield "a string that is not in the source code"
    elif kind == "opaque":
        yield f"a {value['type']}"
    elif kind == "object":
        yield f"a {value['name']}, which is no dataclass"
    else:
        for item in children(value):
            yield from unreadable(item)


def opaque_parts(value: EncodedValue) -> Iterator[str]:
    """Types of the values inside that were not written down: they may hold any number."""
    if kind_of(value) == "opaque":
        yield value["type"]
    for item in children(value):
        yield from opaque_parts(item)


def children(value: EncodedValue) -> Iterator[EncodedValue]:
    """The values directly inside a value."""
    kind = kind_of(value)
    if kind == "dict":
        yield from (item for _, item in value["items"])
    elif kind == "partial":
        yield from (value["function"], *value["items"], *value["fields"].values())
    elif kind in (*HAS_ITEMS, "set"):
        yield from value["items"]
    elif kind in (*HAS_FIELDS, "call"):
        yield from value["fields"].values()
