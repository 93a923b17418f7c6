"""Which Python files a run reads: walking directories, links, and ``--select``/``--exclude``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os.path import commonpath
from pathlib import Path

from nnx_migrate.source.files import ReadFailure

SKIPPED = frozenset({"venv", "node_modules", "__pycache__"})  # besides all hidden directories
# Of what a root may hold. One with more is no project: the home directory, a disk.
MOST_FILES = 50_000  # of Python
MOST_ENTRIES = 2_000_000  # files and directories of any kind


class TooLarge(ValueError):
    """A root that holds more than a project does; the message is one line."""


@dataclass(frozen=True)
class Discovery:
    """What the PATH arguments stand for."""

    base: Path  # report paths are relative to this directory
    files: tuple[Path, ...] = ()  # sorted; to be rewritten
    left_out: tuple[Path, ...] = ()  # under PATH, but not selected
    failures: tuple[ReadFailure, ...] = ()
    class_select: tuple[str, ...] = ()  # globs that speak of classes, not paths
    class_exclude: tuple[str, ...] = ()


def discover(
    paths: Sequence[Path], select: Sequence[str] = (), exclude: Sequence[str] = ()
) -> Discovery:
    """Find the ``*.py`` files of the given files and directories.

    A glob with ``/`` or ending in ``.py``, or that matches a path found here, selects paths; any
    other one selects classes by qualified name. With both kinds a class must satisfy both.
    ``exclude`` globs without ``/`` are tried on both.
    """
    found: set[Path] = set()
    failures: list[ReadFailure] = []
    trees = [path.resolve() for path in paths if path.exists()]
    for path in paths:
        for item in _under(path):
            if isinstance(item, ReadFailure):
                failures.append(item)
            else:
                found.add(item)
    base = _base(trees)
    names = {path: _names(path, base) for path in found}
    globs = [glob for glob in select if _is_path_glob(glob, names.values())]
    unwanted = [glob for glob in exclude if _is_path_glob(glob, names.values())]
    files = tuple(
        sorted(
            path
            for path in found
            if (not globs or _any(names[path], globs)) and not _any(names[path], unwanted)
        )
    )
    return Discovery(
        base=base,
        files=files,
        left_out=tuple(sorted(found.difference(files))),
        failures=tuple(sorted(failures, key=lambda failure: failure.path)),
        class_select=tuple(glob for glob in select if glob not in globs),
        class_exclude=tuple(glob for glob in exclude if not _has_path_form(glob)),
    )


def _base(trees: Sequence[Path]) -> Path:
    """The directory that all trees share."""
    if not trees:
        return Path.cwd()
    return Path(commonpath([tree if tree.is_dir() else tree.parent for tree in trees]))


def _under(path: Path) -> Iterator[Path | ReadFailure]:
    """Files of one PATH argument, resolved; a PATH that is itself a link is followed."""
    try:
        resolved = path.resolve(strict=True)
    except FileNotFoundError:
        reason = "broken symlink" if path.is_symlink() else "no such file or directory"
        yield ReadFailure(path, reason)
    except (OSError, RuntimeError):
        yield ReadFailure(path, "symlink loop" if path.is_symlink() else "unreadable path")
    else:
        if resolved.is_dir():
            yield from _walk(resolved, resolved)
        elif resolved.is_file():
            yield resolved if _is_python(path, resolved) else ReadFailure(path, _kind(resolved))
        else:
            yield ReadFailure(path, "expected a file or a directory")


def _is_python(path: Path, target: Path) -> bool:
    """Whether a file that was named is Python; a script without a suffix says so itself."""
    if path.suffix or target.suffix:
        return ".py" in (path.suffix, target.suffix)
    try:
        with target.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return True  # reading it says why it cannot be read
    return first.startswith(b"#!") and b"python" in first


def _kind(path: Path) -> str:
    if path.suffix == ".ipynb":
        return (
            "expected a Python file, found a notebook: convert it "
            f"(`jupyter nbconvert --to script {path.name}`, or jupytext), then name the script"
        )
    return "expected a Python file (*.py, or a script that starts with #! and python)"


def _walk(
    directory: Path, tree: Path, count: Callable[[int], None] | None = None
) -> Iterator[Path | ReadFailure]:
    """``*.py`` files below ``directory``. Links are judged, never followed.

    ``count`` is told how many entries each directory has.
    """
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        yield ReadFailure(directory, f"unreadable directory: {error.strerror}")
        return
    if count is not None:
        count(len(entries))
    for entry in entries:
        path = Path(entry.path)
        if entry.is_symlink():
            yield from _judge_link(path, tree)
        elif entry.is_dir():
            if not is_foreign_folder(path):
                yield from _walk(path, tree, count)
        elif entry.name.endswith(".py"):
            if entry.is_file():
                yield path
            else:
                yield ReadFailure(path, "expected a file, found a device, pipe or socket")


def _judge_link(path: Path, tree: Path) -> Iterator[ReadFailure]:
    """Why a link is a problem. One to a file or directory of the same tree is none: that is read."""
    if path.name.startswith(".") or path.name in SKIPPED:
        return
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        if path.suffix == ".py":
            yield ReadFailure(path, "broken symlink")
        return
    except (OSError, RuntimeError):
        yield ReadFailure(path, "symlink loop, not followed")
        return
    if target.is_dir() and path.parent.is_relative_to(target):
        yield ReadFailure(path, "symlink loop, not followed")
    elif not target.is_relative_to(tree) and (target.is_dir() or path.suffix == ".py"):
        yield ReadFailure(path, f"symlink out of the tree (to {target}), not followed")


def is_foreign_folder(directory: Path) -> bool:
    """Whether a directory holds no code of the project: hidden, caches, environments."""
    name = directory.name
    if name.startswith(".") or name in SKIPPED:
        return True
    try:
        return (directory / "pyvenv.cfg").is_file()
    except OSError:  # nobody may look into it, and walking it says so
        return False


def _names(path: Path, base: Path) -> tuple[str, ...]:
    """Names a glob may mean: relative to PATH, to the working directory, absolute; parents too.

    One without ``/`` means a file or directory at any depth below PATH, as in .gitignore.
    """
    spellings = [path.as_posix()]
    for directory in (base, Path.cwd().resolve()):
        if path.is_relative_to(directory):
            relative = path.relative_to(directory)
            spellings.extend(one.as_posix() for one in (relative, *relative.parents))
    if path.is_relative_to(base):
        spellings.extend(path.relative_to(base).parts)
    return tuple(spelling for spelling in spellings if spelling != ".")


def _has_path_form(glob: str) -> bool:
    return "/" in glob or glob.endswith(".py")


def _is_path_glob(glob: str, names: Iterable[tuple[str, ...]]) -> bool:
    return _has_path_form(glob) or any(_any(spellings, [glob]) for spellings in names)


def _any(spellings: tuple[str, ...], globs: Sequence[str]) -> bool:
    return any(
        fnmatchcase(name, glob.rstrip("/").removeprefix("./"))
        for glob in globs
        for name in spellings
    )


def project_files(root: Path, explicit: bool, discovery: Discovery) -> tuple[Path, ...]:
    """Files of the project that callers, bases and re-exports of the found ones may be in.

    A root that was named, or that a pyproject.toml or .git marks, is read whole. Otherwise nothing
    says where the project ends: it is PATH itself, and the outermost package around it.

    Raises:
        TooLarge: the root holds more than a project does.
    """
    if explicit or (root / "pyproject.toml").is_file() or (root / ".git").exists():
        return _python_files(root)
    if root == discovery.base and discovery.base in {path.parent for path in discovery.files}:
        beside = (path for path in sorted(root.glob("*.py")) if not path.is_symlink())
        return tuple(path for path in beside if path.is_file()) + discovery.left_out
    if root == discovery.base:
        return discovery.left_out
    return discover([root / discovery.base.relative_to(root).parts[0]]).files


def _python_files(root: Path) -> tuple[Path, ...]:
    """The Python files below a root, given up once they are more than those of a project."""
    left = MOST_ENTRIES
    found: set[Path] = set()

    def count(entries: int) -> None:
        nonlocal left
        left -= entries
        if left < 0:
            raise TooLarge(_too_large(root, f"{MOST_ENTRIES} files and directories"))

    for one in _walk(root, root, count):
        if isinstance(one, Path):
            found.add(one)
        if len(found) > MOST_FILES:
            raise TooLarge(_too_large(root, f"{MOST_FILES} Python files"))
    return tuple(sorted(found))


def _too_large(root: Path, path: str) -> str:
    return (
        f"{root}: expected the root of a project, found more than {path} below it: name one nearer "
        "to PATH with --root"
    )
