"""What a caller asks of a draft: other modules in imports, new names, other words."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from nnx_migrate.edit import imports
from nnx_migrate.edit.data import EditError, ImportChange, Line, NewImport
from nnx_migrate.edit.draft import Draft
from nnx_migrate.edit.expressions import dotted_node
from nnx_migrate.edit.walking import comments_in


def change_import(draft: Draft, statement: ast.stmt, change: ImportChange) -> None:
    """Make an import statement what ``change`` says, in its place."""
    if not change.after and not change.positions:
        draft.change(statement, lambda node: _rename(node, change))
    else:
        draft.change_lines(statement, lambda node: _lines(node, change))


def _rename(node: Any, change: ImportChange) -> Any:
    if change.names is not None:
        return imports.with_names(node, change.names)
    return node if change.module is None else imports.with_module(node, change.module)


def _lines(node: Any, change: ImportChange) -> list[Line]:
    if change.positions and change.module is not None:
        first = imports.move_names(node, change.positions, change.module)
    else:
        first = [Line(_rename(node, change))]
    return [*first, *_new(change.after)]


def _new(new_imports: Sequence[NewImport]) -> list[Line]:
    """Import statements, one per module that names are taken from."""
    lines: list[Line] = []
    names: dict[str, list[tuple[str, str | None]]] = {}
    for one in new_imports:
        if one.name is None:
            lines.append(Line(imports.import_module(one.module, one.alias)))
        else:
            names.setdefault(one.module, []).append((one.name, one.alias))
    return [*lines, *(Line(imports.import_from(module, found)) for module, found in names.items())]


def rename(draft: Draft, place: ast.Name, name: str) -> None:
    """Give a name another one."""
    draft.change(place, lambda node: node.with_changes(value=name))


def change_owner(draft: Draft, place: ast.Attribute, owner: str) -> None:
    """``a.b.attribute`` becomes ``owner.attribute``."""

    def edit(node: Any) -> Any:
        old = node.value
        new = dotted_node(owner).with_changes(lpar=old.lpar, rpar=old.rpar)
        if comments_in(old):
            raise EditError(f"line {place.lineno}: a comment inside a dotted name")
        return node.with_changes(value=new)

    draft.change(place, edit)


def replace(draft: Draft, place: ast.expr, name: str) -> None:
    """Put a dotted name in the place of an expression without comments."""

    def edit(node: Any) -> Any:
        if comments_in(node):
            raise EditError(f"line {place.lineno}: a comment inside a dotted name")
        return dotted_node(name).with_changes(lpar=node.lpar, rpar=node.rpar)

    draft.change(place, edit)


def change_words(draft: Draft, place: ast.expr, change: Callable[[str], str]) -> None:
    """Change what stands between the quotes of a string, an f-string's fields left out."""

    def edit(node: Any) -> Any:
        return node.visit(_Words(change))

    draft.change(place, edit)


class _Words(cst.CSTTransformer):
    def __init__(self, change: Callable[[str], str]) -> None:
        super().__init__()
        self._change = change

    def visit_FormattedStringExpression(self, node: cst.FormattedStringExpression) -> bool:
        return False

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        return updated_node.with_changes(value=self._change(updated_node.value))

    def leave_FormattedStringText(
        self, original_node: cst.FormattedStringText, updated_node: cst.FormattedStringText
    ) -> cst.FormattedStringText:
        return updated_node.with_changes(value=self._change(updated_node.value))
