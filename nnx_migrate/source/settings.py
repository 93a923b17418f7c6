"""The project's own settings: the table ``[tool.nnx-migrate]`` of its pyproject.toml, and how its tests are run."""

from __future__ import annotations

import reprlib
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from nnx_migrate.source.named_imports import DeclarationError, Declared, declared_imports

_KEYS = ("imports",)
# Where a project says how its tests are run.
_TEST_FILES = (
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "tox.ini",
    "Makefile",
    ".github/workflows/*.y*ml",
)


class SettingsError(ValueError):
    """The settings cannot be used: one line with the file, what was expected and what was found."""


@dataclass(frozen=True)
class Settings:
    """What the project says about itself.

    Attributes:
      imports: what code imports by names that only the running program knows.
      table: all of it as text.
      runs_examples: whether its tests run the examples in docstrings, by ``--doctest-modules`` or the like.
    """

    imports: Declared = field(default_factory=dict)
    table: str = "{}"
    runs_examples: bool = False


def read_settings(root: Path) -> Settings:
    """Settings of the project at ``root``; the defaults when it has none.

    Raises:
        SettingsError: the file is not TOML, or the table has an unknown key or a bad value.
    """
    file = root / "pyproject.toml"
    found = Settings(runs_examples=_runs_examples(root))
    if not file.is_file():
        return found
    try:
        return _settings(file, found)
    except RecursionError:
        raise SettingsError(f"{file.name}: nested too deeply to be read; make it flatter") from None


def _runs_examples(root: Path) -> bool:
    for file in (file for pattern in _TEST_FILES for file in sorted(root.glob(pattern))):
        with suppress(OSError):  # a folder, or nobody may read it
            if b"doctest" in file.read_bytes():
                return True
    return False


def _settings(file: Path, settings: Settings) -> Settings:
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError) as error:  # also of bytes, dates and numbers with too many digits
        reason = " ".join(str(error).split())
        raise SettingsError(f"{file.name}: cannot be read: {reason}") from error
    table = tool.get("nnx-migrate", {}) if isinstance(tool, dict) else {}
    where = f"{file.name}: [tool.nnx-migrate"
    if not isinstance(table, dict):
        raise SettingsError(f"{where}]: expected a table, found {reprlib.repr(table)}")
    for key in table:
        if key not in _KEYS:
            close = get_close_matches(key, _KEYS, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; known keys: {', '.join(_KEYS)}"
            raise SettingsError(f"{where}]: unknown key {key!r}{hint}")
    entries = table.get("imports", {})
    if not isinstance(entries, dict):
        raise SettingsError(f"{where}.imports]: expected a table, found {reprlib.repr(entries)}")
    try:
        return replace(settings, imports=declared_imports(entries), table=repr(table))
    except DeclarationError as error:
        reason = " ".join(str(error).split())  # the keys of a table may have line breaks
        raise SettingsError(f"{where}.imports] {reason}") from error
