"""From source texts to a project: module names, parsing, which files matter."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nnx_migrate.model import FileResult, FileStatus
from nnx_migrate.source.project import Module, Project, parse
from nnx_migrate.source.roots import import_names, imports
from nnx_migrate.source.settings import SettingsError

if TYPE_CHECKING:
    from nnx_migrate.rewrite.request import RewriteRequest
    from nnx_migrate.source.files import SourceText

_ALL = 200  # projects up to this many files are indexed whole


@dataclass
class Loaded:
    """The project as parsed, which of its modules are to be rewritten, and what failed."""

    project: Project
    targets: dict[str, Module] = field(default_factory=dict)  # by path relative to PATH
    unchanged: list[str] = field(default_factory=list)
    failures: list[FileResult] = field(default_factory=list)


def load(request: RewriteRequest) -> Loaded:
    """Parse the files that can matter to Linen code.

    Raises:
        SettingsError: a shape is declared for code of the project.
    """
    base = request.base or request.root
    targets = {id(source): relative(source.path, base) for source in request.files}
    sources = [*request.files, *request.context]
    names = import_names(sources, request.root)
    loaded = Loaded(Project(declared=request.settings.shapes))
    for source in relevant(sources):
        name, is_package = names[id(source)]
        path = targets.get(id(source))
        if path is None and name.split(".")[0] == "flax":
            continue  # flax is the installed package, also in a checkout of Flax
        try:
            module = _parsed(name, path or str(source.path), source.text, is_package)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if path is not None:
                loaded.failures.append(FileResult(path, FileStatus.FAILED, error=reason_of(error)))
            continue
        loaded.project.modules[name] = module
        if path is not None:
            loaded.targets[path] = module
    _check_declared(loaded.project)
    done = {*loaded.targets, *(failure.path for failure in loaded.failures)}
    for source in request.files:
        path = targets[id(source)]
        if path not in done and len(sources) <= _ALL:
            _check_skipped(loaded, path, source.text)
        elif path not in done:
            loaded.unchanged.append(path)
    return loaded


def _check_declared(project: Project) -> None:
    """Only what cannot be read is declared: the project's own functions are followed instead."""
    for symbol in project.declared:
        if project.definition(symbol) is not None or symbol in project.classes:
            raise SettingsError(
                f'pyproject.toml: [tool.nnx-migrate.shapes] "{symbol}": expected a function of '
                "another library, found one of this project, whose code is read; remove the entry"
            )


def _parsed(name: str, path: str, text: str, is_package: bool) -> Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in the user's strings
        return parse(name, path, text, is_package=is_package)


def _check_skipped(loaded: Loaded, path: str, text: str) -> None:
    """A file without a word of Flax is unchanged, but a broken one is still reported."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        loaded.failures.append(FileResult(path, FileStatus.FAILED, error=reason_of(error)))
        return
    loaded.unchanged.append(path)


def reason_of(error: BaseException) -> str:
    """Why a file cannot be parsed, in one line."""
    if isinstance(error, SyntaxError) and error.lineno is None:
        return f"not valid Python: {error.msg}; fix the file and run again"
    if isinstance(error, SyntaxError):
        place = f"line {error.lineno}, column {error.offset}"
        hint = "; is it Python 2?" if "print" in str(error.msg) else ""
        return f"not valid Python at {place}: {error.msg}{hint}; fix the file and run again"
    return f"cannot be parsed: {type(error).__name__}: {error}"


def relative(path: Path, base: Path) -> str:
    """A file's path in the report."""
    try:
        return path.relative_to(base).as_posix()
    except ValueError:
        return path.as_posix()


# A class that may be a Linen module, by the look of its bases, and a whole import statement.
_MODULE_CLASS = re.compile(r"^class (\w+)\([^)]*(?:Module|Layer|Block|Base|Net)\w*\b", re.MULTILINE)
_FLAX_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:flax|nnx_migrate)\b", re.MULTILINE)
_DECORATOR = re.compile(r"^@(?:\w+\.)*(\w+)", re.MULTILINE)  # of top-level statements
_FUNCTION = re.compile(r"\ndef (\w+)")
_WORD = re.compile(r"\w+")


def relevant(sources: list[SourceText]) -> Iterable[SourceText]:
    """Files that name Flax, those that import a class or module of such a file, and its decorators.

    A decorator is looked for where a function of its name is defined or handed on by a package.
    """
    if len(sources) <= _ALL:
        return sources
    chosen: list[SourceText] = []
    rest: list[SourceText] = []
    for source in sources:
        (chosen if _names_flax(source.text) else rest).append(source)
    linen = [source for source in chosen if _FLAX_IMPORT.search(source.text)]
    words = {name for source in linen for name in _MODULE_CLASS.findall(source.text)}
    words |= {source.path.stem for source in linen if _MODULE_CLASS.search(source.text)}
    decorators = {name for source in linen for name in _DECORATOR.findall(source.text)}
    return [*chosen, *(source for source in rest if _is_needed(source, words, decorators))]


def _names_flax(text: str) -> bool:
    return "flax" in text or "nnx_migrate.linen" in text or "nnx_migrate import linen" in text


def _is_needed(source: SourceText, words: set[str], decorators: set[str]) -> bool:
    imported = _imported(source.text)
    hands_on = source.path.name == "__init__.py" and decorators & imported
    return bool(
        words & imported or hands_on or decorators & set(_FUNCTION.findall(f"\n{source.text}"))
    )


def _imported(text: str) -> set[str]:
    return set(_WORD.findall(" ".join(f"{module} {names}" for module, names in imports(text))))
