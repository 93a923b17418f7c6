"""The only module that writes files: each atomically, in-place runs behind a journal."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nnx_migrate.digests import digest
from nnx_migrate.model import JOURNAL_FOLDER
from nnx_migrate.rewrite import journal as journals
from nnx_migrate.rewrite.journal import Entry, Journal, JournalError, State

EXCLUDE = ", or leave it out with --exclude"
_NOT_COPIED = frozenset({".git", ".hg", ".venv", "venv", "__pycache__", JOURNAL_FOLDER})


@dataclass(frozen=True)
class PlannedWrite:
    """One file to replace: the bytes it must have now, and the bytes it gets."""

    path: Path
    before: bytes
    after: bytes


@dataclass(frozen=True)
class WriteFailure:
    """A file that was left as it was, and why (one line)."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Undone:
    """What ``undo`` did: files restored, and files it left alone."""

    restored_files: tuple[Path, ...] = ()
    failures: tuple[WriteFailure, ...] = ()


class Busy(Exception):
    """Another run holds the journal."""


def write_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Replace or create a file; at no moment does ``path`` hold half of it.

    Raises:
        OSError: nothing has changed.
    """
    staged = _staging_path(path)
    try:
        staged.unlink(missing_ok=True)  # of a killed run; a link there is not followed
        with staged.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            staged.chmod(mode)
        staged.replace(path)
    except BaseException:
        with suppress(OSError):
            staged.unlink()
        raise


def write_cache_file(file: Path, data: bytes, keep_count: int) -> None:
    """Write a file of a cache folder, and remove all of its kind but the newest ``keep_count``.

    Raises:
        OSError: it is not written, or others are still there.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, data)
    alike = file.parent.glob(f"*{file.suffix}")
    for one in sorted(alike, key=lambda one: one.stat().st_mtime_ns)[:-keep_count]:
        one.unlink(missing_ok=True)


def _staging_path(path: Path) -> Path:
    """Where the new content waits: a fixed name, so that a killed run leaves no second one."""
    return path.with_name(f".{path.name}{journals.STAGED}")


def read_only(path: Path, instead: str = "") -> str | None:
    """Why a file must not be replaced: mode bits are believed, even where root could write.

    ``instead`` is what else the user can do about it.
    """
    try:
        if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):
            return f"read-only file: make it writable{instead}"
        if not path.parent.stat().st_mode & 0o222 or not os.access(path.parent, os.W_OK):
            return f"read-only directory: make it writable{instead}"
    except OSError as error:
        return reason_of(error)
    return None


def reason_of(error: OSError) -> str:
    """One line about an operating system error."""
    if error.errno == errno.ENOSPC:
        return "disk full: not written; free some space and run again"
    return f"not written: {error.strerror or error}"


def write_in_place(
    root: Path, plans: Sequence[PlannedWrite], run: tuple[str, ...]
) -> tuple[WriteFailure, ...]:
    """Replace files behind the journal of ``root``. Files that fail are left as they were.

    Raises:
        Busy: another run is writing here.
        JournalError: the journal on disk cannot be used.
        OSError: the journal could not be written; before the first replacement nothing has
            changed, after it the journal still says what has.
    """
    if not plans:
        old = journals.load(root)
        if old is not None and old.state is not State.DONE:
            with _lock(root):
                _store(root, replace(old, state=State.DONE))
        return ()
    with _lock(root):
        old = journals.load(root)
        ready, failures = _ready(plans)
        _store_originals(root, ready)
        current = journals.begin(old, run, [_entry(root, plan) for plan in ready])
        _store(root, current)
        for plan in ready:
            failure = _replace(plan)
            if failure is not None:
                failures.append(failure)
        current = replace(current, state=State.PARTIAL if failures else State.DONE)
        _store(root, current)
        _drop_unused_originals(root, current)
    return tuple(failures)


def _entry(root: Path, plan: PlannedWrite) -> Entry:
    found = digest(plan.before)
    return Entry(journals.name_in(root, plan.path), found, found, digest(plan.after))


def _ready(plans: Sequence[PlannedWrite]) -> tuple[list[PlannedWrite], list[WriteFailure]]:
    """Split off the files that are not what they were when the run read them."""
    ready: list[PlannedWrite] = []
    failures: list[WriteFailure] = []
    for plan in plans:
        reason = _change_reason(plan)
        if reason is None:
            ready.append(plan)
        else:
            failures.append(WriteFailure(plan.path, reason))
    return ready, failures


def _change_reason(plan: PlannedWrite) -> str | None:
    try:
        if plan.path.read_bytes() != plan.before:
            return "changed during the run: left as it is now; run again"
    except FileNotFoundError:
        return "vanished during the run; run again"
    except OSError as error:
        return reason_of(error)
    return None


def _replace(plan: PlannedWrite) -> WriteFailure | None:
    reason = _change_reason(plan) or read_only(plan.path, EXCLUDE)
    if reason is not None:
        return WriteFailure(plan.path, reason)
    try:
        write_file(plan.path, plan.after, stat.S_IMODE(plan.path.stat().st_mode))
    except OSError as error:
        return WriteFailure(plan.path, reason_of(error))
    return None


def _store(root: Path, journal: Journal) -> None:
    write_file(journals.journal_file(root), journal.to_json().encode())


def _store_originals(root: Path, plans: Sequence[PlannedWrite]) -> None:
    for plan in plans:
        file = journals.original_file(root, digest(plan.before))
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            write_file(file, plan.before)


def _drop_unused_originals(root: Path, journal: Journal) -> None:
    used = {entry.before for entry in journal.entries}
    if journal.state is not State.DONE:
        used |= {entry.found for entry in journal.entries}
    for file in (root / JOURNAL_FOLDER / "originals").iterdir():
        if file.name not in used and journals.is_hash(file.name):
            file.unlink()


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    """Hold the journal directory; of one that ends up without a journal what is ours is removed."""
    directory = root / JOURNAL_FOLDER
    journals.check_folder(root)
    directory.mkdir(exist_ok=True)
    ignore = directory / ".gitignore"
    try:
        if not ignore.exists():
            write_file(ignore, b"*\n")
        with (directory / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Busy(f"another nnx-migrate run is writing under {root}") from error
            try:
                yield
            finally:
                _remove_own_files(root)
    except OSError:
        _remove_own_files(root)
        raise


def _remove_own_files(root: Path) -> None:
    """Without a journal, remove our files and then the folders, should they be empty."""
    if journals.journal_file(root).exists():
        return
    directory = root / JOURNAL_FOLDER
    originals = directory / "originals"
    originals_there = [file for file in originals.glob("*") if journals.is_hash(file.name)]
    staged = [*directory.glob(f"*{journals.STAGED}"), *originals.glob(f"*{journals.STAGED}")]
    with suppress(OSError):
        for file in (*originals_there, *staged, directory / "lock", directory / ".gitignore"):
            file.unlink(missing_ok=True)
        if originals.is_dir():
            originals.rmdir()
        directory.rmdir()


def undo(root: Path) -> Undone:
    """Give every journalled file its original bytes back, unless it was changed since.

    Raises:
        Busy, JournalError, OSError: as for `write_in_place`; FileNotFoundError: no journal.
    """
    if not journals.journal_file(root).exists():
        raise FileNotFoundError(errno.ENOENT, f"no journal of an in-place run under {root}")
    with _lock(root):
        journal = journals.load(root)
        if journal is None:
            raise FileNotFoundError(errno.ENOENT, f"no journal of an in-place run under {root}")
        if (reason := read_only(journals.journal_file(root))) is not None:
            raise JournalError(f"{journals.journal_file(root)}: {reason}; nothing was restored")
        restored: list[Path] = []
        failures: list[WriteFailure] = []
        left: list[Entry] = []
        for entry in journal.entries:
            path = root / entry.path
            reason = _restore(root, path, entry, restored)
            if reason is not None:
                failures.append(WriteFailure(path, reason))
                left.append(entry)
        if left:
            _store(root, Journal(State.DONE, journal.run, tuple(left)))
        else:
            journals.journal_file(root).unlink()
    return Undone(tuple(restored), tuple(failures))


def _restore(root: Path, path: Path, entry: Entry, restored_files: list[Path]) -> str | None:
    """Restore one file; the reason if it has to stay as it is."""
    with suppress(OSError):
        _staging_path(path).unlink()
    try:
        found = digest(path.read_bytes())
        if found == entry.before:
            return None
        if found not in (entry.after, entry.found):
            return "changed since the run: left as it is now"
        reason = read_only(path)
        if reason is None:
            mode = stat.S_IMODE(path.stat().st_mode)
            write_file(path, journals.read_original(root, entry.path, entry.before), mode)
            restored_files.append(path)
    except FileNotFoundError:
        return "removed since the run: not restored"
    except OSError as error:
        return reason_of(error)
    except JournalError as error:
        return str(error).removeprefix(f"{entry.path}: ")
    return reason


def write_copy(
    base: Path, trees: Sequence[Path], destination: Path, replacements: Mapping[Path, bytes]
) -> None:
    """Write a complete copy of ``trees`` (files or directories under ``base``).

    It appears as a whole or not at all. Repositories, environments and caches are not copied. A link
    within the copied directory stays a link; one that leaves it points to the same place as before.

    Raises:
        OSError: ``destination`` holds something, or writing failed; nothing is left behind.
    """
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise FileExistsError(
            errno.EEXIST, f"{destination} is not empty: name a new or empty directory"
        )
    destination.parent.mkdir(parents=True, exist_ok=True)
    staged = destination.with_name(f".{destination.name}{journals.STAGED}")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        staged.mkdir()
        for tree in trees:
            target = staged / tree.relative_to(base)
            if tree.is_dir():
                _copy_directory(
                    tree, target, replacements, lambda path: path in (destination, staged)
                )
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy_file(tree, target, replacements)
        staged.replace(destination)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _copy_directory(
    source: Path, target: Path, replacements: Mapping[Path, bytes], left_out: Callable[[Path], bool]
) -> None:
    for directory, names, files in os.walk(source):
        here = Path(directory)
        there = target / here.relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        links = [name for name in names if (here / name).is_symlink()]
        names[:] = [
            name
            for name in names
            if name not in _NOT_COPIED and name not in links and not left_out(here / name)
        ]
        for name in (*files, *links):
            if (here / name).is_symlink():
                (there / name).symlink_to(_link_target(here / name, source))
            elif (here / name).is_file():
                _copy_file(here / name, there / name, replacements)


def _copy_file(source: Path, target: Path, replacements: Mapping[Path, bytes]) -> None:
    if source in replacements:
        target.write_bytes(replacements[source])
        shutil.copymode(source, target)
    else:
        shutil.copy2(source, target)


def _link_target(link: Path, tree: Path) -> str:
    """Where the copy of a link points: within the copy if the link stays within the tree."""
    target = Path(os.path.normpath(link.parent / os.readlink(link)))
    return os.path.relpath(target, link.parent) if target.is_relative_to(tree) else str(target)
