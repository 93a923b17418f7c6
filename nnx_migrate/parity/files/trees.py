"""Where each side's packages come from: a directory, or a git revision exported for the run."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Directories of ours that only hold a link to a tree that is itself a package.
_LINKS = {"before": "before-link", "after": "after-link"}
_SCRATCH = "nnx-migrate-trees-"


class BadTree(ValueError):
    """A ``before=`` or ``after=`` that names no tree; the message is one line for the user."""


@dataclass(frozen=True)
class Trees:
    """The ``sys.path`` entries each side starts with, and the roots of the user's own code.

    A root is None where a side sees the case file's directory alone.
    """

    before: tuple[Path, ...]
    after: tuple[Path, ...]
    before_root: Path | None
    after_root: Path | None


@contextmanager
def open_trees(case: Path, before: str | None, after: str | None) -> Iterator[Trees]:
    """Find both trees; what was exported from git or linked is removed at the end.

    ``before`` and ``after`` are directories, or revisions of the git repository that contains the
    other tree (else the case file). A tree contributes itself and its ``src``; a tree that is
    itself a package is linked under the name its package has in the *other* tree or on disk.
    Without a tree a side sees the case file's directory. Raises :class:`BadTree`.
    """
    case_directory = case.resolve().parent
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH))
    try:
        old = _tree("before", before, after, case_directory, scratch)
        new = _tree("after", after, before, case_directory, scratch)
        if old is not None and new is None and before and not Path(before).is_dir():
            new = repository_of(case_directory)  # a revision is compared with the working tree
        names = _package_names(old, new)
        yield Trees(
            before=_entries(old, new, case_directory, scratch / _LINKS["before"], names),
            after=_entries(new, old, case_directory, scratch / _LINKS["after"], names),
            before_root=old,
            after_root=new,
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def roots_of(entries: Sequence[Path]) -> dict[Path, Path]:
    """The directory that each entry of a tree stands for: itself, or what our own link leads to."""
    return {
        entry: (next(entry.iterdir()) if _is_link(entry) else entry).resolve() for entry in entries
    }


def _is_link(entry: Path) -> bool:
    return entry.name in _LINKS.values() and entry.parent.name.startswith(_SCRATCH)


def repository_of(directory: Path) -> Path | None:
    """Return the top of the git repository around a directory, or None."""
    done = _git(directory, "rev-parse", "--show-toplevel")
    return Path(done.stdout.decode().strip()) if done.returncode == 0 else None


def _tree(
    side: str, text: str | None, other: str | None, case_directory: Path, scratch: Path
) -> Path | None:
    if text is None:
        return None
    path = Path(text)
    if path.is_dir():
        return path.resolve()
    if path.exists():
        raise BadTree(f"{side}={text}: expected a directory or a git revision, found a file")
    if other and Path(other).is_dir():
        return _export(side, text, Path(other).resolve(), scratch / side)
    top = repository_of(case_directory)
    return _export(side, text, top or case_directory, scratch / side)


def _export(side: str, revision: str, around: Path, target: Path) -> Path:
    """Write a revision of the repository around a directory below ``target``.

    Returns the directory that corresponds to ``around``, so that ``before=v1 after=repo/models``
    compares ``models`` with ``models``.
    """
    top = repository_of(around)
    if top is None:
        raise BadTree(f"{side}={revision}: no such directory, and {around} is in no git repository")
    option = revision.startswith("-")
    done = None if option else _git(top, "archive", "--format=tar", f"{revision}^{{tree}}")
    if done is None or done.returncode != 0:
        raise BadTree(f"{side}={revision}: neither a directory nor a git revision of {top}")
    target = target / top.name
    target.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(target, filter="tar")
    inside = target / around.relative_to(top.resolve())
    return inside if inside.is_dir() else target


def _package_names(old: Path | None, new: Path | None) -> dict[Path, str]:
    """Name the trees that are themselves a package: both by the before tree's own name."""
    packages = [tree for tree in (old, new) if tree and (tree / "__init__.py").is_file()]
    return dict.fromkeys(packages, packages[0].name if packages else "")


def _entries(
    tree: Path | None, other: Path | None, case_directory: Path, link: Path, names: dict[Path, str]
) -> tuple[Path, ...]:
    if tree is None:
        return (case_directory,)
    if tree in names:
        link.mkdir()
        (link / names[tree]).symlink_to(tree, target_is_directory=True)
        own: tuple[Path, ...] = (link,)
    else:
        own = tuple(path for path in (tree, tree / "src") if path.is_dir())
    # Helpers beside the case file are fine, unless that directory is the other side's code.
    has_case_directory = other is None or not case_directory.is_relative_to(other)
    return (*own, case_directory) if has_case_directory and case_directory not in own else own


def _git(directory: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", str(directory), *words], capture_output=True, check=False
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(words, 127, b"", b"git is not installed")
