"""Nodes of a file with edits applied: what is edited changes, everything else is the same node.

A :class:`Renderer` maps ``ast`` nodes (by ``id``) to replacements and gives the LibCST node of any
``ast`` node of the file with the edits inside it applied. The replacement of an expression is an
expression, of a statement a sequence of statements, of a decorator ``GONE``; or a function of the
renderer that makes one, so that edits nest: it renders the node's children (edits of their own
included), and ``renderer.inner(node)`` is the node itself with only the edits *inside* it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from nnx_migrate.edit.calls import NONE, Argument, Comments
from nnx_migrate.edit.expressions import attribute, dotted_node, string
from nnx_migrate.edit.fitting import Place, Unrenderable
from nnx_migrate.edit.page import Page, page_of
from nnx_migrate.edit.sources import Sources, sources_of
from nnx_migrate.edit.statements import GONE
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.wrapping import refit

Made: TypeAlias = Any  # an expression, a sequence of statements, or GONE
Replacement: TypeAlias = "Made | Callable[[Renderer], Made]"


@dataclass(frozen=True)
class Renderer:
    """Gives nodes of one file with ``edits`` (node ``id`` -> replacement) applied.

    Args:
        text: the file.
        tree: its ``ast``.
    """

    text: str
    tree: ast.Module
    edits: Mapping[int, Replacement] = field(default_factory=dict)

    @property
    def sources(self) -> Sources:
        """Both trees of the file.

        Raises:
            EditError: LibCST does not read it.
        """
        return sources_of(self.text, self.tree)

    @property
    def unit(self) -> str:
        """One level of indentation in this file."""
        return self.sources.module.default_indent

    @property
    def page(self) -> Page:
        """How lines of this file are laid out."""
        return page_of(self.text, self.unit)

    def with_edits(self, edits: Mapping[int, Replacement]) -> Renderer:
        """A copy with more edits; on the same node the new one wins."""
        return replace(self, edits={**self.edits, **edits})

    def without(self, *nodes: ast.AST) -> Renderer:
        """A copy that has no edit of ``nodes`` themselves (those inside them stay)."""
        dropped = {id(node) for node in nodes}
        return replace(self, edits={k: v for k, v in self.edits.items() if k not in dropped})

    def render(self, node: ast.AST) -> Any:
        """The node with its own edit and all edits inside it applied.

        Raises:
            Unrenderable: the node is not in the file, or an edit inside an f-string does not fit.
        """
        edit = self.edits.get(id(node))
        return self.inner(node) if edit is None else self.replacement(edit)

    def replacement(self, edit: Replacement) -> Made:
        """What a replacement is here."""
        return edit(self) if callable(edit) else edit

    def argument(self, value: ast.expr, keyword: str | None = None) -> Argument:
        """A value as an argument, with the comments that it has as one."""
        star = ""
        if isinstance(value, ast.Starred) and id(value) not in self.edits:
            comments = self.comments(value)
            return Argument(self.render(value.value), None, "*", comments)
        return Argument(self.render(value), keyword, star, self.comments(value))

    def arguments(self, call: ast.Call) -> list[Argument]:
        """The arguments of a call as they stand."""
        return [*map(self.argument, call.args), *map(self.keyword, call.keywords)]

    def keyword(self, one: ast.keyword) -> Argument:
        """A keyword argument, or ``**options``."""
        found = self.argument(one.value, one.arg)
        return replace(found, star="**") if one.arg is None else found

    def comments(self, value: ast.expr) -> Comments:
        """The comments of the argument that a value is."""
        return self.sources.comments.get(id(value), NONE)

    def inner(self, node: ast.AST) -> Any:
        """The node with the edits inside it applied, ignoring an edit of the node itself."""
        found = self.sources.pairs.get(id(node))
        if found is None:
            return self._new(node)
        places = self._edit_places(node)
        if not places:
            return found
        from nnx_migrate.edit.applying import apply

        return apply(
            found,
            places,
            self._way(places, node),
            self.sources.pairs,
            lambda place: self.replacement(self.edits[id(place.node)]),
            self._refit,
        )

    def _refit(self, old: Any, new: Any) -> Any:
        """A line with the edits made in it, which may be too long now."""
        column = None if new is old else self.sources.columns.get(id(old))
        return new if column is None else refit(old, new, column, self.page)

    def line(self, statement: ast.stmt) -> Any:
        """The line of a statement, comments included, with the edits inside it applied.

        Raises:
            Unrenderable: it shares its line.
        """
        small = self.inner(statement)
        line = self.sources.lines.get(id(statement))
        if line is None:
            return small
        if len(line.body) > 1 or not isinstance(line, cst.SimpleStatementLine):
            return cst.SimpleStatementLine(
                [small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]
            )
        return self._refit(line, line.with_changes(body=[small]))

    def lines(self, statement: ast.stmt) -> list[Any]:
        """A statement, its own edit applied, with the comments of its line."""
        edit = self.edits.get(id(statement))
        if edit is None:
            return [self.line(statement)]
        from nnx_migrate.edit.applying import in_place_of

        line = self.sources.lines.get(id(statement))
        found = self.replacement(edit)
        return list(found if line is None else in_place_of(line, found))

    def render_module(self) -> Any:
        """The whole file with all edits applied."""
        return self.inner(self.tree)

    def after_top_edits(self) -> Renderer:
        """A copy in which the topmost edits of the file are made, those inside of them with them."""
        places = self._edit_places(self.tree)
        made = {id(one.node): self.replacement(self.edits[id(one.node)]) for one in places}
        return replace(self, edits=made)

    def _new(self, node: ast.AST) -> Any:
        """The node of an expression that is not written in the file."""
        match node:
            case ast.Constant(value=str(text)):
                return string(text)
            case ast.Constant(value=value):
                return cst.parse_expression(repr(value))
            case ast.Name(id=name):
                return dotted_node(name)
            case ast.Attribute(value=value, attr=name):
                return attribute(self.render(value), name)
        raise Unrenderable(node, f"a {type(node).__name__} has no position of its own")

    def _edit_places(self, node: ast.AST) -> list[Place]:
        """The topmost edited nodes below a node."""
        edits, found = self.edits, list[Place]()

        def visit(parent: ast.AST) -> None:
            for name in parent._fields:
                value = getattr(parent, name, None)
                for child in value if value.__class__ is list else (value,):
                    if not isinstance(child, ast.AST):
                        continue
                    if id(child) in edits:
                        found.append(Place(child, parent, name))
                    else:
                        visit(child)

        if edits:
            visit(node)
        return found

    def _way(self, places: Sequence[Place], node: ast.AST) -> set[int]:
        """Ids of the LibCST nodes between ``node`` and the places."""
        targets = {id(one.node) for one in places}
        pairs, way = self.sources.pairs, set[int]()

        def visit(one: ast.AST) -> bool:
            holds = id(one) in targets
            if not holds:
                for child in ast.iter_child_nodes(one):
                    holds = visit(child) or holds
            if holds and id(one) in pairs:
                way.add(id(pairs[id(one)]))
            return holds

        visit(node)
        return way


__all__ = ["GONE", "Made", "Renderer", "Replacement", "Unrenderable"]
