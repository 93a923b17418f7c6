"""JSON that stands in an evidence file, held against what ``record`` writes there.

Every function returns its argument, or raises ValueError for a file that is damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nnx_migrate.evidence.values import EncodedValue, Shape, children
from nnx_migrate.json_values import as_list, as_object, unlike

_ITEMS = {"items": list}
_NAME = {"module": str, "name": str}
_NAMED_FIELDS = {**_NAME, "fields": dict}

# What each kind of encoded value has besides its kind.
_PARTS: Mapping[str, Mapping[str, type]] = {
    "tuple": _ITEMS,
    "list": _ITEMS,
    "dict": _ITEMS,
    "set": {**_ITEMS, "frozen": bool},
    "dataclass": _NAMED_FIELDS,
    "module": _NAMED_FIELDS,
    "object": _NAMED_FIELDS,
    "call": _NAMED_FIELDS,
    "partial": {**_ITEMS, "function": object, "fields": dict},
    "name": _NAME,
    "enum": {**_NAME, "member": str},
    "dtype": {"name": str},
    "text": {"value": str},
    "float": {"value": str},
    "withheld": {"length": int},
    "array": {"shape": list, "dtype": str},
    "key": {"shape": list},
    "default": {},
    "opaque": {"type": str},
}


def encoded_value(value: Any) -> EncodedValue:
    """A field or an argument."""
    if value is None or isinstance(value, bool | int | float):
        return value
    parts = _PARTS.get(str(value.get("$"))) if isinstance(value, dict) else None
    if parts is None or not all(isinstance(value.get(name), kind) for name, kind in parts.items()):
        raise unlike("a recorded value", value)
    if "shape" in parts:
        _as_shape(value["shape"])
    if value["$"] == "dict" and not all(_is_pair(one, (str, int)) for one in value["items"]):
        raise unlike("pairs of a name and a value", value["items"])
    for child in children(value):
        encoded_value(child)
    return value


def as_arguments(value: Any) -> Mapping[str, EncodedValue]:
    """Arguments by name."""
    for one in as_object(value).values():
        encoded_value(one)
    return as_object(value)


def as_changes(value: Any) -> Mapping[str, int | float]:
    """Numbers that were changed, by the text that reads them."""
    if not all(isinstance(one, int | float) for one in as_object(value).values()):
        raise unlike("numbers", value)
    return as_object(value)


def as_shapes(value: Any) -> tuple[tuple[str, Shape], ...]:
    """Arrays of a call by name."""
    if not all(_is_pair(one, (str,)) for one in as_list(value)):
        raise unlike("a list of arrays", value)
    return tuple((name, _as_shape(shape)) for name, shape in value)


def _is_pair(value: Any, first: tuple[type, ...]) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], first)


def _as_shape(value: Any) -> Shape:
    if not all(type(one) is int and one >= 0 for one in as_list(value)):
        raise unlike("a shape", value)
    return tuple(value)
