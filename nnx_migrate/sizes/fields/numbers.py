"""The integers that sizes may be, as far as a project builds its classes: 1, a negative one, or several.

``nn.Dense(self.width)(x) * x`` has the last size of ``x`` where ``width`` is 1, and ``x[..., : self.n]`` that
of ``x`` where ``n`` is None.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from nnx_migrate.abstract import expression as ex
from nnx_migrate.sizes.fields.values import possible_values
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.FloorDiv: operator.floordiv,
    ast.Mult: operator.mul,
    ast.Sub: operator.sub,
}
_MOST = 32  # values of one side of an operator


@dataclass(frozen=True)
class Ones(Container[str]):
    """The texts of sizes that the fields of a class make 1, as far as the project builds it."""

    project: Project
    cls: ClassInfo

    def __contains__(self, text: object) -> bool:
        """Whether a size may be 1: ``self.width``."""
        return isinstance(text, str) and may_be_one(self.project, self.cls, text)


def may_be_one(project: Project, cls: ClassInfo, text: str) -> bool:
    """Whether a size that is written with fields of a class is 1 where the project builds it: ``self.width``."""
    return 1 in _numbers(project, cls, text)


def may_be_no_place(project: Project, cls: ClassInfo, text: str) -> bool:
    """Whether what an array is sliced by may be None, or count from the end."""
    return any(one is None or one < 0 for one in _numbers(project, cls, text))


@lru_cache(maxsize=1 << 12)  # every run of a class asks
def may_be_several(project: Project, cls: ClassInfo, text: str) -> bool:
    """Whether what fields of a class give may be a list, tuple or array: ``self.mean``."""
    if "self." not in text:
        return False
    found = _found(project, cls, ast.parse(text, mode="eval").body)
    return any(isinstance(one, ast.Tuple | ast.List | ast.Call) for one in found)


@lru_cache(maxsize=1 << 12)
def _numbers(project: Project, cls: ClassInfo, text: str) -> frozenset[int | None]:
    """The integers that an expression with fields of a class may be, and None."""
    if "self." not in text and (not text.isidentifier() or ex.is_input(text)):
        return frozenset()
    return frozenset(_integers(project, cls, ast.parse(text, mode="eval").body))


def _integers(project: Project, cls: ClassInfo, node: ast.expr) -> Iterator[int | None]:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            sides = [[*_integers(project, cls, one)][:_MOST] for one in (left, right)]
            for first, second in product(*sides):
                if first is None or second is None:
                    continue
                if second or type(op) is not ast.FloorDiv:
                    yield _OPERATORS[type(op)](first, second)
        case ast.Call(func=ast.Name(id="len"), args=[several]):
            for found in _found(project, cls, several):
                if isinstance(found, ast.Tuple | ast.List):
                    yield len(found.elts)
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in cls.methods:
            for result in each(cls.methods[name], ast.Return):
                if result.value is not None:
                    yield from _integers(project, cls, result.value)
        case _:
            for one in _found(project, cls, node):
                value = _literal(one)
                if value is None or type(value) is int:
                    yield value


def _found(project: Project, cls: ClassInfo, node: ast.expr) -> Iterator[ast.AST]:
    return (one for one, _ in possible_values(project, node, cls.scope, cls.node))


def _literal(node: ast.AST) -> object:
    try:
        return ast.literal_eval(node) if isinstance(node, ast.Constant | ast.UnaryOp) else ""
    except ValueError:  # ``not flag``
        return ""
