"""Where a command writes what it found: to no file that it reads, to none of others, and to none twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nnx_migrate.model import JOURNAL_FOLDER

_SOURCES = frozenset({".py", ".pyi", ".ipynb"})
_START = 4096  # bytes
_DATABASE = b"SQLite format 3\0"


class OutputError(ValueError):
    """An output option that names no place to write; the message is one line."""


def check_outputs(outputs: Sequence[tuple[str, Path]], inputs: Iterable[Path]) -> None:
    """Refuse outputs, each as the user spells it with its file, before anything is read.

    Raises:
        OutputError: naming the first that cannot be written, or would replace what is read.
    """
    read = [("", path) for path in inputs]
    for number, (words, path) in enumerate(outputs):
        if not path.absolute().parent.is_dir() or (path.exists() and not path.is_file()):
            raise OutputError(f"{words}: expected a file in an existing directory")
        if _is_read_by_name(path.resolve()):
            raise OutputError(
                f"{words}: expected a file to write, found the name of one that is read "
                "(source, pyproject.toml or journal); name another file"
            )
        for other, taken in [*read, *outputs[:number]]:
            if _same(path, taken):
                use = f"{other} writes" if other else "this command reads"
                raise OutputError(f"{words}: expected a file of its own, found one that {use}")
        if path.exists() and not _is_ours(path):
            raise OutputError(
                f"{words}: expected a new file or one that this tool wrote, found another; "
                "name another file, or delete it first"
            )


def _is_read_by_name(path: Path) -> bool:
    return path.suffix in _SOURCES or path.name == "pyproject.toml" or JOURNAL_FOLDER in path.parts


def _is_ours(path: Path) -> bool:
    """Whether a file is empty, or begins as what a command writes: JSON with a schema, or a database."""
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except OSError:
        return True  # who writes it says what is wrong
    return not start.strip() or b'"schema"' in start or start.startswith(_DATABASE)


def _same(one: Path, other: Path) -> bool:
    """Whether two spellings mean one file; it need not be there yet."""
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()
