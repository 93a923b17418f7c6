"""What is known of one file: its scopes, their bindings, and the loads and calls in them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Binding:
    """One way a name gets its value; ``kind`` says how to read ``node``."""

    kind: str  # import, from, star, alias, annotated, class, function, parameter, other
    scope: Scope  # where ``node`` is evaluated
    name: str
    node: ast.AST | None = None
    target: str = ""  # import: dotted module; from, star: absolute module
    inner: Scope | None = None  # class, function: the scope it opens
    end: tuple[int, int] = (0, 0)
    always: bool = False  # runs whenever the body it stands in runs


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class, function (or lambda) or comprehension scope."""

    kind: str
    name: str  # qualified
    parent: Scope | None
    node: ast.AST
    unit: Unit
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer: dict[str, str] = field(default_factory=dict)  # name -> "global" | "nonlocal"
    attributes: dict[str, list[tuple[str, ast.expr, Scope]]] = field(default_factory=dict)
    returns: list[ast.expr] = field(default_factory=list)
    generator: bool = False
    own: frozenset[int] | None = None  # ids of the statements of its body, when first asked for

    def __post_init__(self) -> None:
        self.unit.scopes.append(self)


@dataclass(eq=False, slots=True)
class Unit:
    """One parsed file."""

    path: str
    module: str
    package: str  # what relative imports start from
    text: str  # without a byte order mark
    tree: ast.Module
    scope: Scope = field(init=False)
    scopes: list[Scope] = field(default_factory=list)
    stars: list[Binding] = field(default_factory=list)
    loads: list[tuple[ast.expr, Scope, str]] = field(default_factory=list)
    calls: list[tuple[ast.Call, Scope, str]] = field(default_factory=list)
    handles: list[tuple[ast.Attribute, Scope, str]] = field(default_factory=list)
    named: list[tuple[ast.Call, Scope, str]] = field(default_factory=list)  # calls of other names
    classes: list[Scope] = field(default_factory=list)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    bindings: list[tuple[str, Binding]] = field(default_factory=list)  # but parameters

    def release(self) -> None:
        """Undo what refers to each other, so that all of it is gone with the last name for it."""
        for scope in self.scopes:
            scope.bindings, scope.attributes = {}, {}
            del scope.unit
