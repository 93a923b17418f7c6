"""Copies of fields and call arguments with some of their numbers and dimensions replaced."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
from flax import linen
from flax.core import FrozenDict

from nnx_migrate.evidence.values import dimension
from nnx_migrate.record.encode import is_array, module_fields

Changes = Mapping[str, int | float]


def with_changes(value: Any, path: str, changes: Changes) -> Any:
    """The value with every number and dimension that ``changes`` names replaced.

    Paths are those of :func:`nnx_migrate.evidence.values.numbers` and ``dimension``. What does not
    change is returned as it is.
    """
    if not any(name.startswith(path) for name in changes):
        return value
    if isinstance(value, int | float):
        return changes.get(path, value)
    if is_array(value):
        return _with_shape(value, path, changes)
    named: Any = value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return named._replace(**_parts(named._asdict(), path, changes))
    if isinstance(value, tuple | list):
        return type(value)(
            with_changes(one, f"{path}[{i}]", changes) for i, one in enumerate(value)
        )
    if isinstance(value, Mapping):
        items = {
            key: with_changes(item, f"{path}[{key!r}]", changes) for key, item in value.items()
        }
        return named.copy(items) if isinstance(value, FrozenDict) else _like(value, items)
    if isinstance(value, linen.Module):
        return value.clone(**_parts(module_fields(value), path, changes))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        parts = {name: getattr(value, name) for name in names}
        return dataclasses.replace(value, **_parts(parts, path, changes))
    return _object(value, path, changes)


def _parts(parts: Mapping[str, Any], path: str, changes: Changes) -> dict[str, Any]:
    """Those parts that change."""
    new = {name: with_changes(part, f"{path}.{name}", changes) for name, part in parts.items()}
    return {name: part for name, part in new.items() if part is not parts[name]}


def _like(value: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    if type(value) is dict:
        return items
    again = copy.copy(value)
    again.update(items)  # type: ignore[attr-defined]
    return again


def _object(value: Any, path: str, changes: Changes) -> Any:
    """A config object with other attributes."""
    again = copy.copy(value)
    for name, part in _parts(vars(value), path, changes).items():
        object.__setattr__(again, name, part)
    return again


def _with_shape(value: Any, path: str, changes: Changes) -> Any:
    rank = len(value.shape)
    shape = tuple(
        changes.get(dimension(path, axis - rank), size) for axis, size in enumerate(value.shape)
    )
    return jax.ShapeDtypeStruct(shape, value.dtype)
