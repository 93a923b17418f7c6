"""What JSON from a file has to be. Every function returns its argument, or raises ValueError."""

from __future__ import annotations

import reprlib
from typing import Any


def as_text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise unlike("a text", value)
    return value


def as_list(value: Any) -> list[Any]:
    """A list of anything."""
    if not isinstance(value, list):
        raise unlike("a list", value)
    return value


def as_texts(value: Any) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(as_text(one) for one in as_list(value))


def as_object(value: Any) -> dict[str, Any]:
    """An object of anything."""
    if not isinstance(value, dict):
        raise unlike("an object", value)
    return value


def as_texts_by_name(value: Any) -> dict[str, str]:
    """An object of texts."""
    return {name: as_text(one) for name, one in as_object(value).items()}


def unlike(expected: str, found: Any) -> ValueError:
    """The error for a value of another kind; long ones are shortened."""
    return ValueError(f"expected {expected}, found {reprlib.repr(found)}")
