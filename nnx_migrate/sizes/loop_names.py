"""Loop variables in sizes: which loop one belongs to, and where its text says the same.

Two loops may bind one name, and what a size reads is the variable of one of them. In expressions
every loop's variable has a name of its own; the source's name stands for it inside that loop only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.source.bindings import bound_names, target_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import walk


@dataclass
class LoopNames:
    """The loop variables that a analysis has met, by their names in expressions.

    Args:
      loops: the loop that binds each.
      names: its name in the source.
      together: the loops in which it has that value: its own, and those that go with it through the
        same items.
    """

    loops: dict[str, ast.AST] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    together: dict[str, list[ast.AST]] = field(default_factory=dict)

    def of(self, loop: ast.AST, identifier: str) -> str:
        """The name in expressions of a variable that ``loop`` binds."""
        names = [name for name, spelled in self.names.items() if spelled == identifier]
        for name in names:
            if self.loops[name] is loop:
                return name
        name = f"{identifier}__loop{len(names) + 1}" if names else identifier
        self.loops[name], self.names[name], self.together[name] = loop, identifier, [loop]
        return name

    def join(self, loop: ast.AST, other: ast.AST) -> None:
        """Note that two loops go through their items together.

        Variables of one name that go through the same values then mean the same in both.
        """
        for identifier, values in variables_of(loop).items():
            if variables_of(other).get(identifier) == values:
                mine, yours = (self.together[self.of(one, identifier)] for one in (loop, other))
                if mine is not yours:
                    mine += yours
                    self.together |= {n: mine for n, one in self.together.items() if one is yours}

    def at(self, expression: Expr, place: ast.AST) -> Expr:
        """The expression in the source's names; what these do not say at ``place`` is foreign."""
        ours = expression.names & self.loops.keys()
        return ex.substitute(expression, {one: self._name_at(one, place) for one in ours})

    def _name_at(self, name: str, place: ast.AST) -> Expr:
        identifier = self.names[name]
        around = [one for one in self._binding(identifier) if place in _inside(one)]
        innermost = [one for one in around if _inside(one).isdisjoint(around)]
        known = any(one is loop for one in innermost for loop in self.together[name])
        known &= not any(identifier in _bound_again(one) for one in innermost)
        return ex.name(identifier if known else f"{ex.FOREIGN}{name}")

    def _binding(self, identifier: str) -> Iterator[ast.AST]:
        for name, spelled in self.names.items():
            if spelled == identifier:
                yield self.loops[name]


def loop_around(cls: ClassInfo, call: ast.Call) -> ast.AST | None:
    """The innermost loop of a class's code that a constructor call stands in."""
    return next((one for one in cls.above(call) if call in _inside(one)), None)


def inside(loop: ast.AST) -> ast.AST:
    """A place where a loop has bound its variables."""
    match loop:
        case ast.For(body=body):
            return body[-1]
        case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.GeneratorExp(elt=item):
            return item
        case ast.DictComp(value=item):
            return item
    return loop


def header(loop: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """What a loop binds, and what it goes through; None where it leaves some out, or is several."""
    match loop:
        case ast.For(target=target, iter=items):
            return target, items
        case (
            ast.ListComp(generators=[one])
            | ast.SetComp(generators=[one])
            | ast.GeneratorExp(generators=[one])
            | ast.DictComp(generators=[one])
        ) if not one.ifs:
            return one.target, one.iter
    return None


def variables_of(loop: ast.AST) -> dict[str, str]:
    """The variables of a loop, with a text that says through which values they go."""
    found = header(loop)
    return _values(*found) if found is not None else {}


def _values(target: ast.expr, items: ast.expr) -> dict[str, str]:
    match target, items:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[_], keywords=[]):
            return {name: "from 0"}
        case (
            ast.Tuple(elts=[ast.Name(id=name), rest]),
            ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]),
        ):
            return {**_values(rest, inner), name: "from 0"}
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=parts, keywords=[]):
            found: dict[str, str] = {}
            if len(targets) == len(parts):
                for one, part in zip(targets, parts, strict=True):
                    found |= _values(one, part)
            return found
    return {name: f"{ast.dump(target)} in {ast.dump(items)}" for name in target_names(target)}


# Every expression of a method is looked up in all loops around it.
@lru_cache(maxsize=4096)
def _bound_again(loop: ast.AST) -> frozenset[str]:
    """The names that a loop's body binds: its variables have another value then."""
    body = loop.body if isinstance(loop, ast.For) else []
    return frozenset(name for one in body for name in bound_names(one))


@lru_cache(maxsize=4096)
def _inside(loop: ast.AST) -> frozenset[ast.AST]:
    """The places where ``loop`` has bound its variables."""
    match loop:
        case ast.For(body=body):
            return frozenset(one for part in body for one in walk(part))
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return frozenset(walk(loop)).difference([loop], walk(loop.generators[0].iter))
    return frozenset()
