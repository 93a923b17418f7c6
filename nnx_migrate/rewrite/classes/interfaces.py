"""Base classes that only say which methods their subclasses have.

Such a class has no variables, submodules or fields, and no code that runs: explicit, it is a base of
explicit and of lazy classes alike.
"""

from __future__ import annotations

import ast

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

_BASES = frozenset({"abc.ABC", "flax.linen.Module"})


def is_interface(project: Project, cls: ClassInfo) -> bool:
    """Whether a Linen class has abstract methods without a body, and nothing else."""
    node = cls.node
    return (
        cls.linen
        and _BASES.issuperset(cls.bases)
        and not node.keywords
        and not node.decorator_list
        and not cls.repeated
        and all(_is_declared(project, cls, one) for one in node.body)
        and any(isinstance(one, ast.FunctionDef) for one in node.body)
    )


def _is_declared(project: Project, cls: ClassInfo, statement: ast.stmt) -> bool:
    match statement:
        case ast.FunctionDef():
            decorators = project.decorators(cls, statement)
            return decorators == ("abc.abstractmethod",) and all(map(_is_empty, statement.body))
    return _is_empty(statement)


def _is_empty(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "NotImplementedError"
    return False
