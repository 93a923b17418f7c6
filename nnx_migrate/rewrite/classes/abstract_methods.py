"""Abstract methods: NNX's metaclass asks for them, and some base classes have nothing else."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.sizes.mentions import mentions_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

RULE = "inheritance"


def check_abstract_methods(project: Project, cls: ClassInfo) -> None:
    """NNX's metaclass asks for what a class does not implement, Linen's does not.

    Raises:
      Refused: an abstract method that it inherits is nowhere implemented, or one of its own and it is built.
    """
    if any("abc.ABC" in one.bases for one in cls.mro):
        return  # Python asks for them in either
    for name in sorted(cls.method_names):
        found = cls.find(name)
        if found is None or "abc.abstractmethod" not in project.decorators(*found):
            continue
        if found[0] is not cls or any(one.call for one in mentions_of(project, cls.name)):
            raise ClassRefused(
                cls.node,
                f"it does not implement the abstract method {name}, which NNX asks for",
                "implement it, or take the decorator away",
                RULE,
            )


# ---- base classes that only say which methods their subclasses have
# Such a class has no variables, submodules or fields, and no code that runs: explicit, it is a base of
# explicit and of lazy classes alike.

_BASES = frozenset({"abc.ABC", "flax.linen.Module"})


def is_interface(project: Project, cls: ClassInfo) -> bool:
    """Whether a Linen class has abstract methods without a body, and nothing else."""
    node = cls.node
    return (
        cls.linen
        and _BASES.issuperset(cls.bases)
        and not node.keywords
        and not node.decorator_list
        and not cls.is_ambiguous
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
