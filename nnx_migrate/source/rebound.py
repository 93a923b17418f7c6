"""Classes whose name their module or function binds anew: ``Block = nn.remat(Block)``.

Right below the class statement, before anything can have read the name, this is what a decorator of
the class is: every use of the name means what the last assignment made of the class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.source.walking import walk


@dataclass(frozen=True)
class Rebound:
    """A class statement, and the values that its name is given after it, each made of the one before."""

    node: ast.ClassDef
    values: tuple[ast.expr, ...]


def rebound_classes(body: list[ast.stmt], counts: dict[str, int]) -> Iterator[tuple[str, Rebound]]:
    """The classes of a body that are bound anew right below their statement.

    ``counts`` says how often the whole scope binds a name: nothing else may.
    """
    for index, statement in enumerate(body):
        if not isinstance(statement, ast.ClassDef) or counts[statement.name] < 2:
            continue
        name, below = statement.name, body[index + 1 :]
        values = tuple(_values(name, below))
        if len(values) + 1 == counts[name] and not _is_global(name, body):
            yield name, Rebound(statement, values)


def _values(name: str, below: list[ast.stmt]) -> Iterator[ast.expr]:
    for statement in below:
        match statement:
            case ast.Assign(targets=[ast.Name(id=bound)], value=ast.Call() as value) if (
                bound == name and _mentions(value, name) == 1
            ):
                yield value
            case ast.ClassDef() | ast.FunctionDef() | ast.Expr(value=ast.Constant()) if not (
                _mentions(statement, name)
            ):
                continue
            case _:
                return


def _mentions(node: ast.AST, name: str) -> int:
    return sum(isinstance(one, ast.Name) and one.id == name for one in walk(node))


def _is_global(name: str, body: list[ast.stmt]) -> bool:
    """Whether a function may bind the name, too."""
    declared = (ast.Global, ast.Nonlocal)
    nodes = (node for one in body for node in walk(one))
    return any(isinstance(one, declared) and name in one.names for one in nodes)
