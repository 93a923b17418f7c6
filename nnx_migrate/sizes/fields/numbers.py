"""The integers that sizes may be, as far as a project builds its classes: 1, a negative one, or several.

``nn.Dense(self.width)(x) * x`` has the last size of ``x`` where ``width`` is 1, and ``x[..., : self.n]`` that
of ``x`` where ``n`` is None.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, product

from nnx_migrate.abstract import expression as ex
from nnx_migrate.sizes.fields.values import Found, possible_values
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Mult: operator.mul,
    ast.Sub: operator.sub,
}
_MOST = 32  # values of one side of an operator
_ROUNDS = 8  # of a variable that is computed from itself


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
    node = ast.parse(text, mode="eval").body
    return any(map(_is_several, _Reading(project, cls).find(node, cls.scope)))


def _is_several(numbers: Found) -> bool:
    node, _ = numbers
    if isinstance(node, ast.BinOp):  # ``(0.5,) * 3``
        return any(isinstance(one, ast.Tuple | ast.List) for one in (node.left, node.right))
    return isinstance(node, ast.Tuple | ast.List | ast.Call)


@lru_cache(maxsize=1 << 12)
def _numbers(project: Project, cls: ClassInfo, text: str) -> frozenset[int | None]:
    """The integers that an expression with fields of a class may be, and None."""
    if "self." not in text and (not text.isidentifier() or ex.is_input(text)):
        return frozenset()
    node = ast.parse(text, mode="eval").body
    made: _Made = {}
    for _ in range(_ROUNDS):
        reading = _Reading(project, cls, made)
        found = frozenset(reading.integers(node, cls.scope))
        if not reading.is_cyclic:
            break
        made = reading.numbers
    return found


_Place = tuple[str, int, int, int | None]
_Made = Mapping[_Place, frozenset[int]]


@dataclass
class _Reading:
    """What expressions in the code of a class, and those that give it fields, may be.

    Attributes:
      earlier: what arithmetic gave in the round before, by its place: ``n = n * 2`` has itself.
    """

    project: Project
    cls: ClassInfo
    earlier: _Made = field(default_factory=dict)
    numbers: dict[_Place, frozenset[int]] = field(default_factory=dict)
    pending: set[_Place] = field(default_factory=set)
    is_cyclic: bool = False

    def integers(self, node: ast.expr, scope: Scope) -> Iterator[int | None]:
        """The integers that an expression may be, and None."""
        match node:
            case ast.BinOp():
                yield from self.results(node, scope)
            case ast.Call(func=ast.Name(id="len"), args=[several]):
                for found, _ in self.find(several, scope):
                    if isinstance(found, ast.Tuple | ast.List):
                        yield len(found.elts)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self.cls.methods:
                for result in each(self.cls.methods[name], ast.Return):
                    if result.value is not None:
                        yield from self.integers(result.value, scope)
            case _:
                for one, where in self.find(node, scope):
                    if isinstance(one, ast.BinOp):
                        yield from self.integers(one, where)
                        continue
                    value = _literal(one)
                    if value is None or type(value) is int:
                        yield value

    def results(self, node: ast.BinOp, scope: Scope) -> frozenset[int]:
        """The integers that arithmetic may give."""
        place = (scope.module.name, node.lineno, node.col_offset, node.end_col_offset)
        if place in self.pending or place in self.numbers:
            self.is_cyclic |= place in self.pending
            return self.numbers.get(place) or self.earlier.get(place, frozenset())
        self.pending.add(place)
        sides = [{*islice(self.integers(one, scope), _MOST)} for one in (node.left, node.right)]
        found = (_result(node.op, first, second) for first, second in product(*sides))
        self.numbers[place] = frozenset(one for one in islice(found, _MOST) if one is not None)
        self.pending.remove(place)
        return self.numbers[place]

    def find(self, node: ast.expr, scope: Scope) -> Iterator[Found]:
        """The constants, lists and arithmetic that an expression may be."""
        around = self.cls.node if scope is self.cls.scope else scope.module.parents.class_of(node)
        return possible_values(self.project, node, scope, around)


def _result(op: ast.operator, left: int | None, right: int | None) -> int | None:
    made = _OPERATORS.get(type(op))
    if made is None or left is None or right is None:
        return None
    try:
        return made(left, right)
    except ZeroDivisionError:
        return None


def _literal(node: ast.AST) -> object:
    try:
        return ast.literal_eval(node) if isinstance(node, ast.Constant | ast.UnaryOp) else ""
    except ValueError:  # ``not flag``
        return ""
