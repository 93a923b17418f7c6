"""Words of the command line, ``key=value`` each, and what their values mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nnx_migrate.outputs import OutputError, check_outputs
from nnx_migrate.parity.case_settings import MOST
from nnx_migrate.parity.files.case_file import nearest

OUTPUTS = ("report", "certificate")  # words that name a file to write


class BadWord(ValueError):
    """A word of the command line that cannot be used; the message is one line."""


def read(words: Sequence[str]) -> dict[str, str]:
    """Split the words; refuse what has no value and what is given twice. Any key is let through."""
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise BadWord(f"{key}: expected {key}=VALUE")
        if key in values:
            raise BadWord(f"{key}= is given twice")
        values[key] = value
    return values


def require_keys(words: Sequence[str], keys: Sequence[str]) -> None:
    """Refuse the first word whose key is unknown, with the nearest known one."""
    for word in words:
        key, equals, _ = word.partition("=")
        if key not in keys and not equals and "case" in keys and key.endswith((".py", ".db")):
            raise BadWord(f"{key}: expected key=VALUE; did you mean case={key}?")
        if key not in keys:
            raise BadWord(f"unknown key {key!r}{nearest(key, keys)}")


def number(values: Mapping[str, str], key: str, least: int) -> int | None:
    """A whole number, or None where the key is not given."""
    if key not in values:
        return None
    text = values[key]
    digits = text.isascii() and text.isdigit()
    if digits and (len(text) > len(str(MOST)) or int(text) > MOST):
        raise BadWord(f"{key}={text[:20]}: expected at most {MOST}")
    if not digits or int(text) < least:
        raise BadWord(f"{key}={text}: expected a whole number of at least {least}")
    return int(text)


def mesh_sizes(text: str) -> dict[str, int]:
    """Read ``fsdp:4,expert:2``."""
    mesh: dict[str, int] = {}
    for part in text.split(","):
        axis, _, size = part.partition(":")
        digits = size.isascii() and size.isdigit() and len(size) <= len(str(MOST))
        if not axis.isidentifier() or not digits or int(size) < 1 or axis in mesh:
            raise BadWord(f"mesh={text}: expected axis:size[,axis:size...], found {part!r}")
        mesh[axis] = int(size)
    return mesh


def choice(values: Mapping[str, str], key: str, choices: Sequence[str]) -> str | None:
    """One of a few words, or None where the key is not given."""
    if key in values and values[key] not in choices:
        raise BadWord(f"{key}={values[key]}: expected {' or '.join(choices)}")
    return values.get(key)


def is_path(text: str) -> bool:
    """Whether ``rules=`` names a file, not rules of our own."""
    return "/" in text or text.endswith((".yml", ".yaml"))


def output_files(values: Mapping[str, str]) -> dict[str, Path]:
    """Where the report and the certificate go, checked before anything runs.

    Raises:
        BadWord: a place that cannot be written, or is a file that another word names.
    """
    files = {key: Path(values[key]) for key in OUTPUTS if key in values}
    others = [Path(value) for key, value in values.items() if key not in OUTPUTS]
    try:
        check_outputs([(f"{key}={path}", path) for key, path in files.items()], others)
    except OutputError as error:
        raise BadWord(str(error)) from error
    certificate = files.get("certificate")
    if certificate is not None and certificate.suffix != ".json":
        raise BadWord(f"certificate={certificate}: expected a name that ends in .json")
    return {key: path.resolve() for key, path in files.items()}


def write(key: str, path: Path, text: str) -> None:
    """Write what ``key=`` asks for in one step: a reader never sees half of it."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BadWord(f"{key}={path}: {error.strerror}") from error
