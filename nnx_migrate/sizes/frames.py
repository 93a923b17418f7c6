"""What the interpreter keeps per running function and per loop."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.values import Instance, Value
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Scope


@dataclass
class Frame:
    """One running function."""

    scope: Scope
    env: dict[str, Value]
    instance: Instance | None = None
    defined_in: ClassInfo | None = None
    own: bool = False  # code of the root class itself
    returns: list[tuple[Expr | None, Value]] = field(default_factory=list)
    depth: int = 0  # conditions that were already open when the function started
    jumps: list[dict[str, Value]] = field(default_factory=list)  # locals at break and continue
    tests: dict[str, ast.expr] = field(default_factory=dict)  # local name -> the test it holds


@dataclass
class Loop:
    """A loop being run once for all its iterations."""

    node: ast.AST
    origins: list[ast.AST] = field(default_factory=list)
    first: list[Value] = field(default_factory=list)  # items that come before the alike ones
    last: dict[str, Expr] = field(default_factory=dict)
    foreign: bool = False  # of another class: __init__ cannot read its variables

    def variable(self, identifier: str) -> str:
        """The name of a loop variable in expressions."""
        return f"{ex.FOREIGN}{identifier}" if self.foreign else identifier
