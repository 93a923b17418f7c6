"""The journal of in-place runs: what a directory's ``.nnx-migrate/`` says. Nothing is written here.

``journal.json`` holds one entry per file that was or will be replaced: the hash before and after.
``originals/<hash>`` holds the bytes before. The journal is complete before the first file is
replaced, so a run that is killed at any point can be finished or undone.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from nnx_migrate.digests import digest
from nnx_migrate.model import JOURNAL_FOLDER

STAGED = ".nnx-migrate-new"  # the suffix of new content until it is in place
SCHEMA = 1


class State(StrEnum):
    """How far the last run came."""

    WRITING = "writing"  # killed, when found on disk
    PARTIAL = "partial"  # ended, with files that could not be written
    DONE = "done"


class JournalError(Exception):
    """The journal cannot be used; the message is one line and says what to do."""


@dataclass(frozen=True)
class Entry:
    """One file: its path (from the root, ``/`` between parts) and its SHA-256 hashes.

    ``before`` is what undo restores, ``found`` what the last run found and read. The two differ
    when an earlier run had already replaced the file.
    """

    path: str
    before: str
    found: str
    after: str


@dataclass(frozen=True)
class Journal:
    """Everything the runs so far have replaced and not taken back."""

    state: State
    run: tuple[str, ...]  # arguments of the last run that decide its result, and the version
    entries: tuple[Entry, ...] = ()

    def to_json(self) -> str:
        """The text of ``journal.json``."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n"

    def entry(self, path: str) -> Entry | None:
        """The entry of one file."""
        return next((entry for entry in self.entries if entry.path == path), None)


def journal_file(root: Path) -> Path:
    """Where the journal of a root is."""
    return root / JOURNAL_FOLDER / "journal.json"


def original_file(root: Path, before: str) -> Path:
    """Where the bytes with this hash are kept."""
    return root / JOURNAL_FOLDER / "originals" / before


def check_folder(root: Path) -> None:
    """Refuse a journal folder that is not ours: another's without a journal, or one of links.

    Raises:
        JournalError: naming what was found.
    """
    folder = root / JOURNAL_FOLDER
    own = {folder, *(folder / name for name in ("originals", "lock", ".gitignore", "journal.json"))}
    for place in (folder, *sorted(folder.glob("*"))):
        is_folder = place.name in (JOURNAL_FOLDER, "originals")
        if place.is_symlink() and place in own:
            found = "a link"
        elif place in own and place.exists() and place.is_dir() is not is_folder:
            found = "a file" if is_folder else "a folder"
        elif (
            place not in own and not place.name.endswith(STAGED) and not journal_file(root).exists()
        ):
            found = "something else"
        else:
            continue
        raise JournalError(
            f"{place}: expected the journal of in-place runs and nothing else in {folder}, found "
            f"{found}; move it elsewhere, or write a copy with --output"
        )


def is_hash(name: str) -> bool:
    """Whether a name is one that an original has."""
    return len(name) == 64 and name.isalnum()


def name_in(root: Path, path: Path) -> str:
    """How the journal names a file; absolute when it lies outside the root."""
    inside = path.is_relative_to(root)
    return path.relative_to(root).as_posix() if inside else path.as_posix()


def load(root: Path) -> Journal | None:
    """Read the journal of ``root``, if there is one.

    Raises:
        JournalError: it exists and cannot be read.
    """
    file = journal_file(root)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise JournalError(
            f"{file}: unreadable journal ({' '.join(str(error).split())}); "
            f"restore or remove {file.parent}"
        ) from error
    return _from_json(file, content)


def _from_json(file: Path, content: Any) -> Journal:
    try:
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {content['schema']}")
        return Journal(
            State(content["state"]),
            tuple(content["run"]),
            tuple(_entry(file, entry) for entry in content["entries"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(
            f"{file}: expected a journal of schema {SCHEMA}, found {error!r}; "
            f"use the nnx-migrate that wrote it, or remove {file.parent}"
        ) from error


def _entry(file: Path, content: Mapping[str, Any]) -> Entry:
    """One entry; nothing outside the root is believed to be a file of ours, whoever says so."""
    entry = Entry(**content)
    if not all(isinstance(value, str) and value for value in astuple(entry)):
        raise ValueError(f"entry {content}")
    for hash_ in (entry.before, entry.found):
        if not hash_.isalnum():
            raise ValueError(f"entry {entry.path!r}: hash {hash_!r}")
    root = file.parent.parent
    if not leads_inside(root, entry.path):
        raise JournalError(
            f"{file}: entry {entry.path!r}: expected a path inside {root}, found one that leads out "
            f"of it; nothing was changed: remove the entry, or {file.parent}"
        )
    return entry


def leads_inside(root: Path, name: str) -> bool:
    """Whether a path from the root stays in it, links followed."""
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts:
        return False
    try:
        (root / name).stat()
    except OSError as error:
        if error.errno == errno.ELOOP:  # which `resolve` leaves as it is from Python 3.13 on
            return False
    return (root / name).resolve().is_relative_to(root.resolve())


def read_original(root: Path, name: str, before: str) -> bytes:
    """The bytes with this hash, kept for the file ``name``.

    Raises:
        JournalError: they are missing or damaged.
    """
    file = original_file(root, before)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise JournalError(f"{name}: its original {file} is unreadable: {error}") from error
    if digest(data) != before:
        raise JournalError(f"{name}: its original {file} is damaged (hash differs)")
    return data


def original_bytes(root: Path, journal: Journal | None, name: str, data: bytes) -> bytes:
    """What the unfinished run found in a file that it has replaced; else ``data``.

    Raises:
        JournalError: the original is missing or damaged.
    """
    entry = journal.entry(name) if journal else None
    if entry is None or entry.after != digest(data):
        return data
    return read_original(root, name, entry.found)


def unfinished_journal(journal: Journal | None, run: tuple[str, ...]) -> Journal | None:
    """The journal, when its last run has to be finished by this same run.

    Raises:
        JournalError: another run was killed; this one would build on a half-written tree.
    """
    if journal is None or journal.state is State.DONE:
        return None
    if journal.run == run:
        return journal
    if journal.state is State.WRITING:
        raise JournalError(
            "an earlier run with other arguments (or another version) was interrupted: "
            "run it again the same way to finish it, or `nnx-migrate undo` first"
        )
    return None


def is_own(journal: Journal | None, path: str, data: bytes) -> bool:
    """Whether these bytes are what an earlier run wrote to this file, or undid."""
    entry = journal.entry(path) if journal else None
    return entry is not None and digest(data) in (entry.after, entry.found, entry.before)


def begin(old: Journal | None, run: tuple[str, ...], new: Iterable[Entry]) -> Journal:
    """The journal to store before the first write.

    A file that an earlier run wrote keeps that run's original, so that undo goes all the way back.
    """
    entries = {entry.path: entry for entry in old.entries} if old else {}
    for entry in new:
        earlier = entries.get(entry.path)
        if earlier is not None and entry.found in (earlier.after, earlier.found):
            entry = replace(entry, before=earlier.before)
        entries[entry.path] = entry
    return Journal(State.WRITING, run, tuple(entries[path] for path in sorted(entries)))
