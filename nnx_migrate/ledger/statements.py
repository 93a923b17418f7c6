"""What the top-level statements of one file define, mention and import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.ledger.scopes import absolute_module, package_of
from nnx_migrate.ledger.trees import children, statements, walk

_WORD = re.compile(r"\w+")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = frozenset({ast.Import, ast.ImportFrom})
_ANNOTATED = frozenset({ast.arg, ast.FunctionDef, ast.AnnAssign})


@dataclass(frozen=True)
class ImportedName:
    """One name of an import; ``names`` are those it binds, of a star import not known here."""

    kind: str  # import, from, star
    target: str
    name: str
    importer: str  # the module it stands in
    names: frozenset[str]


@dataclass(frozen=True)
class Statement:
    """One top-level statement: what it binds, what it mentions, which imports it holds."""

    definitions: frozenset[str]
    mentions: frozenset[str]
    imports: tuple[ImportedName, ...]


def statements_of(tree: ast.Module, path: str, module: str, bodies: bool) -> list[Statement]:
    """Read the statements of a module, those in its conditionals, loops and ``try`` one by one.

    ``bodies``: whether what the methods of its classes mention counts.
    """
    package = package_of(path, module)
    return [_statement(node, bodies, module, package) for node in statements(tree)]


def _statement(node: ast.stmt, bodies: bool, module: str, package: str) -> Statement:
    """Read one statement in one walk, a class's methods only if ``bodies``."""
    mentioned: set[str] = set()
    imports: list[ImportedName] = []
    declared: set[str] = set()
    pending: list[ast.AST] = [node]
    while pending:
        one = pending.pop()
        kind = type(one)
        if kind is ast.Name:
            mentioned.add(one.id)  # type: ignore[attr-defined]
            continue
        if kind is ast.Global:
            declared.update(one.names)  # type: ignore[attr-defined]
            continue
        if kind in _IMPORTS:
            imports += imports_of(one, module, package)  # type: ignore[arg-type]
            continue
        if kind in _ANNOTATED:
            annotation = getattr(one, "annotation", None) or getattr(one, "returns", None)
            mentioned.update(_string_words(annotation))
        below = children(one)
        if kind is ast.ClassDef and not bodies:
            below = [child for child in below if not isinstance(child, _FUNCTIONS)]
        pending += below
    return Statement(frozenset(_definitions(node, declared)), frozenset(mentioned), tuple(imports))


def imports_of(node: ast.Import | ast.ImportFrom, module: str, package: str) -> list[ImportedName]:
    """The names of an import statement that stands in a module of a package."""
    if isinstance(node, ast.Import):
        found = [
            ("import", one.name, one.asname or one.name.partition(".")[0]) for one in node.names
        ]
    else:
        target = absolute_module(package, node)
        found = [("star" if one.name == "*" else "from", target, one.name) for one in node.names]
    return [
        ImportedName(kind, target, name, module, frozenset(_bound(node, name)))
        for kind, target, name in found
    ]


def _bound(node: ast.Import | ast.ImportFrom, name: str) -> Iterator[str]:
    for one in node.names:
        head = one.name.partition(".")[0]
        if name in (one.name, one.asname, head):
            yield one.asname or head


def _definitions(node: ast.stmt, inner: set[str]) -> set[str]:
    """The globals a statement binds, or changes through an attribute or item."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name} | inner
    if isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    targets = (
        list(node.targets) if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    )
    found: set[str] = set()
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
            targets.append(target.value)
        elif isinstance(target, ast.Tuple | ast.List):
            targets.extend(target.elts)
        elif isinstance(target, ast.Name):
            found.add(target.id)
    return found


def _string_words(annotation: ast.expr | None) -> set[str]:
    """The words of the strings in an annotation."""
    strings = walk(annotation) if annotation is not None else ()
    texts = (one.value for one in strings if isinstance(one, ast.Constant))
    return {word for text in texts if isinstance(text, str) for word in _WORD.findall(text)}
