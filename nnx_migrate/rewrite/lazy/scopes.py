"""What names of one file may be bound to, as far as Flax goes: scopes, imports and aliases.

The lazy form asks what a name *may* be, where proofs ask what it must be: a name that an import
binds in one branch and ``None`` in another may be Flax, and its text has to change in both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nnx_migrate.source.names import named_parameters

LINEN = "flax.linen"
_DEPTH = 20  # longest chain of aliases that is followed
_IMPORTERS = frozenset({"import_module", "__import__", "importorskip"})


@dataclass(eq=False, slots=True)
class Bound:
    """One way in which a name gets its value."""

    statement: ast.stmt
    symbol: str | None = None  # of an import: what it names
    alias: int = 0  # which name of the import statement
    value: ast.expr | None = None  # of an assignment
    scope: Scope | None = None  # where ``value`` is read


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class, function or comprehension."""

    kind: str
    parent: Scope | None
    names: dict[str, list[Bound | None]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)  # declared global

    def lookup(self, name: str) -> list[Bound]:
        """Bindings of the innermost scope that binds a name; those nobody reads are left out."""
        scope: Scope | None = self
        if name in self.outer:
            while scope is not None and scope.parent is not None:
                scope = scope.parent
        while scope is not None:
            skipped = scope.kind == "class" and scope is not self
            if not skipped and name in scope.names:
                return [one for one in scope.names[name] if one is not None]
            scope = scope.parent
        return []


@dataclass(frozen=True)
class Reading:
    """Names and attributes that a file loads, each with the scope it is looked up in."""

    module: Scope
    names: tuple[tuple[ast.Name, Scope], ...]
    attributes: tuple[tuple[ast.Attribute, Scope], ...]


def read(tree: ast.Module) -> Reading:
    """Scopes and loads of one file."""
    walker = _Walker()
    walker.run(tree)
    return Reading(walker.module, tuple(walker.loads), tuple(walker.attributes))


def meanings(node: ast.expr, scope: Scope, depth: int = _DEPTH) -> Iterator[tuple[str, Bound]]:
    """Symbols that an expression may be, each with the binding in this file that it comes from."""
    if depth == 0:
        return
    if isinstance(node, ast.Attribute):
        for symbol, bound in meanings(node.value, scope, depth - 1):
            yield _member(symbol, node.attr), bound
    elif isinstance(node, ast.Name):
        for bound in scope.lookup(node.id):
            if bound.symbol is not None:
                yield bound.symbol, bound
            elif bound.value is not None and bound.scope is not None:
                imported = imported_by(bound.value)
                if imported is not None:
                    yield imported, bound
                else:
                    yield from meanings(bound.value, bound.scope, depth - 1)


def _member(symbol: str, name: str) -> str:
    """``compat.flax`` is the package itself, whatever module hands it on."""
    return "flax" if name == "flax" else f"{symbol}.{name}"


def imported_by(node: ast.expr) -> str | None:
    """``flax...`` of ``importlib.import_module("flax...")`` and calls like it."""
    match node:
        case ast.Call(func=func, args=[ast.Constant(value=str() as name), *_]):
            called = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if called in _IMPORTERS and name.partition(".")[0] == "flax":
                return "flax" if called == "__import__" else name
    return None


def is_linen(symbol: str) -> bool:
    """Whether a symbol is ``flax.linen`` or below."""
    return symbol == LINEN or symbol.startswith(LINEN + ".")


class _Walker:
    """One pass; iterative, so that nested expressions cannot exhaust Python's stack."""

    def __init__(self) -> None:
        self.module = Scope("module", None)
        self.loads: list[tuple[ast.Name, Scope]] = []
        self.attributes: list[tuple[ast.Attribute, Scope]] = []
        self.todo: list[tuple[ast.AST, Scope]] = []

    def run(self, tree: ast.Module) -> None:
        self.todo = [(one, self.module) for one in reversed(tree.body)]
        while self.todo:
            node, scope = self.todo.pop()
            handler = _HANDLERS.get(type(node))
            if handler is None:
                self.push(ast.iter_child_nodes(node), scope)
            else:
                handler(self, node, scope)

    def push(self, nodes: Iterable[ast.AST], scope: Scope) -> None:
        self.todo.extend((one, scope) for one in reversed(list(nodes)))

    def bind(self, scope: Scope, name: str, bound: Bound | None) -> None:
        target: Scope = scope
        if name in scope.outer:
            target = self.module
        while target.kind == "comprehension" and target.parent is not None:
            target = target.parent
        target.names.setdefault(name, []).append(bound)

    def name(self, node: ast.Name, scope: Scope) -> None:
        if isinstance(node.ctx, ast.Load):
            self.loads.append((node, scope))
        elif scope.kind == "comprehension":
            scope.names.setdefault(node.id, []).append(None)
        else:
            self.bind(scope, node.id, None)

    def attribute(self, node: ast.Attribute, scope: Scope) -> None:
        if isinstance(node.ctx, ast.Load):
            self.attributes.append((node, scope))
        self.todo.append((node.value, scope))

    def imports(self, node: ast.Import, scope: Scope) -> None:
        for position, alias in enumerate(node.names):
            bound = alias.asname or alias.name.partition(".")[0]
            symbol = alias.name if alias.asname else bound
            self.bind(scope, bound, Bound(node, symbol, position))

    def imports_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        module = "." * node.level + (node.module or "")
        for position, alias in enumerate(node.names):
            if alias.name == "*" and module == "flax":
                self.bind(scope, "linen", Bound(node, LINEN, position))
            elif alias.name != "*":
                symbol = _member(module, alias.name)
                self.bind(scope, alias.asname or alias.name, Bound(node, symbol, position))

    def assign(self, node: ast.Assign | ast.AnnAssign, scope: Scope) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and node.value is not None:
                self.bind(scope, target.id, Bound(node, value=node.value, scope=scope))
            else:
                self.todo.append((target, scope))
        annotation = [node.annotation] if isinstance(node, ast.AnnAssign) else []
        self.push([*annotation, *([node.value] if node.value else [])], scope)

    def walrus(self, node: ast.NamedExpr, scope: Scope) -> None:
        self.bind(scope, node.target.id, None)
        self.todo.append((node.value, scope))

    def declared(self, node: ast.Global, scope: Scope) -> None:
        scope.outer.update(node.names)

    def caught(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name is not None:
            self.bind(scope, node.name, None)
        self.push(ast.iter_child_nodes(node), scope)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        self.bind(scope, node.name, None)
        inner = Scope("function", scope)
        self.push(node.body, inner)
        self.parameters(node.args, inner, scope)
        self.push([*node.decorator_list, *([node.returns] if node.returns else [])], scope)

    def lambda_(self, node: ast.Lambda, scope: Scope) -> None:
        inner = Scope("function", scope)
        self.todo.append((node.body, inner))
        self.parameters(node.args, inner, scope)

    def parameters(self, spec: ast.arguments, inner: Scope, scope: Scope) -> None:
        every = named_parameters(spec)
        every += [one for one in (spec.vararg, spec.kwarg) if one is not None]
        for one in every:
            inner.names.setdefault(one.arg, []).append(None)
        annotations = [one.annotation for one in every if one.annotation is not None]
        defaults = [*spec.defaults, *(one for one in spec.kw_defaults if one is not None)]
        self.push([*annotations, *defaults], scope)

    def class_(self, node: ast.ClassDef, scope: Scope) -> None:
        self.bind(scope, node.name, None)
        self.push(node.body, Scope("class", scope))
        self.push([*node.decorator_list, *node.bases, *node.keywords], scope)

    def comprehension(self, node: ast.AST, scope: Scope) -> None:
        self.push(ast.iter_child_nodes(node), Scope("comprehension", scope))

    def captured(self, node: ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        if node.name is not None:
            self.bind(scope, node.name, None)
        self.push(ast.iter_child_nodes(node), scope)


_HANDLERS: dict[type, Any] = {
    ast.Name: _Walker.name,
    ast.Attribute: _Walker.attribute,
    ast.Import: _Walker.imports,
    ast.ImportFrom: _Walker.imports_from,
    ast.Assign: _Walker.assign,
    ast.AnnAssign: _Walker.assign,
    ast.NamedExpr: _Walker.walrus,
    ast.Global: _Walker.declared,
    ast.ExceptHandler: _Walker.caught,
    ast.FunctionDef: _Walker.function,
    ast.AsyncFunctionDef: _Walker.function,
    ast.Lambda: _Walker.lambda_,
    ast.ClassDef: _Walker.class_,
    ast.ListComp: _Walker.comprehension,
    ast.SetComp: _Walker.comprehension,
    ast.DictComp: _Walker.comprehension,
    ast.GeneratorExp: _Walker.comprehension,
    ast.MatchAs: _Walker.captured,
    ast.MatchStar: _Walker.captured,
}
