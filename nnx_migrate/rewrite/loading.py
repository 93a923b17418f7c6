"""From source texts to a project: module names, parsing, which files matter."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nnx_migrate.model import FileResult, FileStatus
from nnx_migrate.rewrite.relevant import is_read_whole
from nnx_migrate.source.latest import latest_imports
from nnx_migrate.source.named_imports import TABLE, DeclarationError, check_declaration
from nnx_migrate.source.project import Module, Project, parse
from nnx_migrate.source.roots import import_names
from nnx_migrate.source.settings import SettingsError
from nnx_migrate.source.star_shadowing import shadowed_names

if TYPE_CHECKING:
    from nnx_migrate.rewrite.request import RewriteRequest

_DOCTEST = re.compile(r"^\s*(?:import|from)\s+doctest\b|--doctest-", re.MULTILINE)


@dataclass
class RewriteInput:
    """The project as parsed, which of its modules are to be rewritten, and what failed."""

    project: Project
    targets: dict[str, Module] = field(default_factory=dict)  # by path relative to PATH
    unchanged_files: list[str] = field(default_factory=list)
    failures: list[FileResult] = field(default_factory=list)


def load(request: RewriteRequest) -> RewriteInput:
    """Parse the files that can matter to Linen code.

    Raises:
        SettingsError: what the settings declare does not fit the code.
    """
    base = request.base or request.root
    targets = {id(source): relative(source.path, base) for source in request.files}
    sources = [*request.files, *request.context]
    names = import_names(sources, request.root)
    settings = request.settings
    runs_examples = settings.runs_examples or any(_runs_examples(one.text) for one in sources)
    loaded = RewriteInput(
        Project(
            imports=settings.imports,
            is_whole=is_read_whole(sources),
            runs_examples=runs_examples,
        )
    )
    broken: list[str] = []
    for source in request.relevant:
        name, is_package = names[id(source)]
        path = targets.get(id(source))
        if name.split(".")[0] == "flax":
            continue  # flax is the installed package, also in a checkout of Flax
        try:
            module = _parse(name, path or str(source.path), source.text, is_package)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            broken.append(name)
            if path is not None:
                loaded.failures.append(FileResult(path, FileStatus.FAILED, error=reason_of(error)))
            continue
        loaded.project.modules[name] = module
        if path is not None:
            loaded.targets[path] = module
    _settle(loaded)
    _check_imports(loaded.project, frozenset(name for name, _ in names.values()), broken)
    done = {*loaded.targets, *(failure.path for failure in loaded.failures)}
    for source in request.files:
        path = targets[id(source)]
        if path not in done and is_read_whole(sources):
            _check_other_files(loaded, path, source.text)
        elif path not in done:
            loaded.unchanged_files.append(path)
    return loaded


def _runs_examples(text: str) -> bool:
    # Letters are found many times faster than a pattern.
    return "doctest" in text and _DOCTEST.search(text) is not None


def _settle(inputs: RewriteInput) -> None:
    """Names that a module imports twice, or takes by two stars, mean the last, in all that reads the project."""
    covered = shadowed_names(inputs.project.modules)
    modules = covered | latest_imports({**inputs.project.modules, **covered})
    for path, module in inputs.targets.items():
        inputs.targets[path] = modules.get(module.name, module)
    inputs.project.modules.update(modules)


def _check_imports(
    project: Project, every: Collection[str], broken_modules: Collection[str]
) -> None:
    try:
        check_declaration(
            project.imports,
            project.modules.values(),
            every,
            broken_modules,
            is_whole=project.is_whole,
        )
    except DeclarationError as error:
        raise SettingsError(f"pyproject.toml: {TABLE} {error}") from error


def _parse(name: str, path: str, text: str, is_package: bool) -> Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in the user's strings
        return parse(name, path, text, is_package=is_package)


def _check_other_files(inputs: RewriteInput, path: str, text: str) -> None:
    """A file without a word of Flax is unchanged, but a broken one is still reported."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        inputs.failures.append(FileResult(path, FileStatus.FAILED, error=reason_of(error)))
        return
    inputs.unchanged_files.append(path)


_RUNNING = ".".join(map(str, sys.version_info[:2]))
_FIX = f"fix the file, or run with a later Python than {_RUNNING} if it is written for one, and run again"


def reason_of(error: BaseException) -> str:
    """Why a file cannot be parsed, in one line."""
    if isinstance(error, SyntaxError) and error.lineno is None:
        return f"not valid Python: {error.msg}; {_FIX}"
    if isinstance(error, SyntaxError):
        place = f"line {error.lineno}, column {error.offset}"
        hint = "; is it Python 2?" if "print" in str(error.msg) else ""
        return f"not valid Python at {place}: {error.msg}{hint}; {_FIX}"
    return f"cannot be parsed: {type(error).__name__}: {error}"


def relative(path: Path, base: Path) -> str:
    """A file's path in the report."""
    try:
        return path.relative_to(base).as_posix()
    except ValueError:
        return path.as_posix()
