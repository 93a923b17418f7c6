"""JSON files and what their values have to be: ``as_...`` returns its argument, or raises ValueError."""

from __future__ import annotations

import errno
import os
import reprlib
from pathlib import Path
from typing import Any

_LARGEST = 1 << 30  # bytes


def text_of(path: Path) -> str:
    """The text of a JSON file. Raises OSError, also where it is a device or larger than 1 GiB."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "expected a file")
    if path.stat().st_size > _LARGEST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return path.read_text(encoding="utf-8")


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
