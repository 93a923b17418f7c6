"""Every node of a module outside the skipped classes, with the scope and frame it stands in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.constructs.common.base import Context
from nnx_migrate.source.names import Opaque, Table, table_of
from nnx_migrate.source.project import Module, Scope
from nnx_migrate.source.walking import Comprehension, each

Frame = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: ``frame`` is the innermost function, class or module around it."""

    node: ast.AST
    parent: ast.AST | None
    scope: Scope
    frame: Frame
    context: Context
    top: ast.stmt | None  # the top-level statement of the module that holds it


@dataclass(frozen=True)
class _Every:
    """All places of a module in source order, and where what stands below each ends."""

    places: list[Place]
    ends: list[int]
    at: dict[int, int]  # by ``id`` of the node


@dataclass(frozen=True)
class Places:
    """The places of one module in source order, but those inside of what is skipped."""

    module: Module
    every: _Every
    left_out: tuple[tuple[int, int], ...]  # ranges of places, in order

    def __iter__(self) -> Iterator[Place]:
        """All places."""
        start = 0
        for first, end in self.left_out:
            yield from self.every.places[start:first]
            start = end
        yield from self.every.places[start:]

    def __getitem__(self, node: ast.AST) -> Place:
        """The place of ``node``."""
        return self.every.places[self.every.at[id(node)]]

    def __contains__(self, node: ast.AST) -> bool:
        """Whether ``node`` was looked at."""
        position = self.every.at.get(id(node))
        return position is not None and not any(
            first <= position < end for first, end in self.left_out
        )

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around ``node``."""
        return self[node].parent

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds ``node`` (itself if it is one)."""
        while not isinstance(node, ast.stmt):
            above = self.parent(node)
            assert above is not None
            node = above
        return node


def places_of(module: Module, skip: frozenset[int]) -> Places:
    """Look at every node of ``module`` but the inside of the classes in ``skip``."""
    every = _every(module)
    left_out: list[tuple[int, int]] = []
    for position in sorted(every.at[key] for key in skip & every.at.keys()):
        if not left_out or position >= left_out[-1][1]:
            left_out.append((position + 1, every.ends[position]))
    return Places(module, every, tuple(left_out))


def _every(module: Module) -> _Every:
    """The places of a module; read once, every attempt of a run asks."""
    known = module.memo.get(__name__)
    if not isinstance(known, _Every):
        walker = _Walker(_Every([], [], {}))
        scope = Scope(module)
        for statement in module.tree.body:
            start = Place(statement, module.tree, scope, module.tree, Context.VALUE, statement)
            walker.visit(start)
        known = module.memo[__name__] = walker.places
    return known


@dataclass
class _Walker:
    places: _Every

    def visit(self, place: Place) -> None:
        node, found = place.node, self.places
        position = found.at[id(node)] = len(found.places)
        found.places.append(place)
        found.ends.append(0)
        if isinstance(node, _FUNCTIONS):
            self._function(place, node)
        elif isinstance(node, ast.ClassDef):
            self._class(place, node)
        elif isinstance(node, Comprehension):
            self._comprehension(place, node)
        else:
            for name, child in _children(node):
                self.visit(_below(place, child, _context(node, name, place.context)))
        found.ends[position] = len(found.places)

    def _function(
        self, place: Place, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    ) -> None:
        inside = _method_scope(place).enter(node)
        for name, child in _children(node):
            own = name == "body"
            below = _below(place, child, _context(node, name, Context.VALUE))
            if own:
                below = Place(child, node, inside, node, Context.VALUE, place.top)
            self.visit(below)

    def _class(self, place: Place, node: ast.ClassDef) -> None:
        table, _ = table_of(node.body, place.scope.module.package)
        inside = Scope(place.scope.module, (table, *_method_scope(place).tables))
        for name, child in _children(node):
            below = _below(place, child, _context(node, name, Context.VALUE))
            if name == "body":
                below = Place(child, node, inside, node, Context.VALUE, place.top)
            self.visit(below)

    def _comprehension(self, place: Place, node: ast.AST) -> None:
        targets = [one.target for one in getattr(node, "generators", [])]
        names = {n.id for t in targets for n in each(t, ast.Name)}
        table: Table = {name: Opaque() for name in names}
        inside = Scope(place.scope.module, (table, *place.scope.tables))
        for _, child in _children(node):
            self.visit(Place(child, node, inside, place.frame, place.context, place.top))


def _method_scope(place: Place) -> Scope:
    """The scope a function of this place sees: a class body's own names are left out."""
    if isinstance(place.frame, ast.ClassDef):
        return Scope(place.scope.module, place.scope.tables[1:])
    return place.scope


def _below(place: Place, child: ast.AST, context: Context) -> Place:
    return Place(child, place.node, place.scope, place.frame, context, place.top)


def _context(parent: ast.AST, name: str, around: Context) -> Context:
    if name in ("annotation", "returns"):
        return Context.ANNOTATION
    if name == "decorator_list":
        return Context.DECORATOR
    if isinstance(parent, ast.ClassDef) and name == "bases":
        return Context.BASE
    if isinstance(parent, ast.Call):
        return Context.CALL if name == "func" else Context.VALUE
    if isinstance(parent, ast.stmt | ast.arg | ast.arguments | ast.Attribute):
        return Context.VALUE
    return around if around is Context.ANNOTATION else Context.VALUE


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The nodes right below, without ``Load``, ``Add`` and the like: one object stands for all of a kind."""
    for name, value in ast.iter_fields(node):
        if name in ("ctx", "op", "ops"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield name, child
