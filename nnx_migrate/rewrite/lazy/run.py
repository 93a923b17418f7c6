"""The lazy form of every file of a request: texts, and what stays Linen and why.

A file that cannot be read, or in which we fail, costs that file alone.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from nnx_migrate.edit.data import EditError
from nnx_migrate.rewrite.bugs import describe
from nnx_migrate.rewrite.lazy.leftovers import speaks
from nnx_migrate.rewrite.lazy.linen_parts import LinenClass, keeps
from nnx_migrate.rewrite.lazy.plan import FileParts, plan_file
from nnx_migrate.rewrite.lazy.text import mentions_linen, write
from nnx_migrate.rewrite.loading import reason_of, relative
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.walking import walk

_PARSING = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass
class LazyTexts:
    """New texts by path, files that failed, and classes that stay Linen (path, line -> why)."""

    texts: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    linen_classes: dict[tuple[str, int], LinenClass] = field(default_factory=dict)
    names: dict[tuple[str, int], str] = field(default_factory=dict)  # as Python qualifies them
    silent: set[str] = field(default_factory=set)  # nothing in their strings, see `leftovers`
    keeps_linen: bool = False  # the user keeps something Linen
    lift_calls: list[tuple[str, ast.Call, str]] = field(default_factory=list)  # see `LinenParts`


def make_lazy(request: RewriteRequest) -> LazyTexts:
    """Let every reference to ``flax.linen`` in the files of a request become a lazy one."""
    made = LazyTexts()
    found = keeps(request)
    made.linen_classes = dict(found.classes)
    made.keeps_linen = bool(found.files)
    made.lift_calls = found.lift_calls
    for source in request.files:
        path = relative(source.path, request.base or request.root)
        if not mentions_linen(source.text) and path not in found.files:
            continue
        try:
            _make(path, source.text, source.path.name == "__init__.py", found.files, made)
        except _PARSING as error:
            made.failures[path] = reason_of(error)
        except EditError as error:
            made.failures[path] = f"it cannot be edited: {error}"
        except Exception as bug:
            if os.environ.get("NNX_MIGRATE_DEBUG") == "1":
                raise
            made.failures[path] = _internal(bug)
    return made


def _make(
    path: str,
    text: str,
    is_package: bool,
    parts: Mapping[str, FileParts | None],
    lazy_texts: LazyTexts,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in the user's strings
        tree = ast.parse(text)
    lazy_texts.names.update(_inner_names(path, tree))
    nodes = walk(tree)
    if not speaks(nodes):
        lazy_texts.silent.add(path)
    plan = plan_file(nodes, is_package, parts.get(path))
    if plan.empty:
        return
    new = write(text, tree, plan)
    if new != text:
        lazy_texts.texts[path] = new


def _inner_names(path: str, tree: ast.Module) -> dict[tuple[str, int], str]:
    """Names of classes inside functions, from the module on: ``make.<locals>.Block``."""
    found: dict[tuple[str, int], str] = {}
    todo: list[tuple[ast.AST, str, bool]] = [(tree, "", False)]
    while todo:
        node, prefix, inside = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                if inside:
                    found[path, child.lineno] = f"{prefix}{child.name}"
                todo.append((child, f"{prefix}{child.name}.", inside))
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                todo.append((child, f"{prefix}{child.name}.<locals>.", True))
            elif isinstance(child, ast.stmt | ast.ExceptHandler):
                todo.append((child, prefix, inside))
    return found


def _internal(bug: Exception) -> str:
    return (
        f"internal error{describe(bug)}; the file stays as it is, please report this with it"
        " (NNX_MIGRATE_DEBUG=1 shows the traceback)"
    )
