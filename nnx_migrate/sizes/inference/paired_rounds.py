"""Lists that a loop fills in some rounds, and that another loop reads in the same ones.

    for i in range(n):
        if i < n - 1:
            downs.append(Down())  # setup; then self.downs = downs
    ...
    for i in range(n):
        if i < n - 1:
            x = self.downs[i](x)  # __call__

The analysis does not follow such a list. Rounds that read it where it was filled read as many items as there
are, each another one: all of them, or Linen raises.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.constants import written_out
from nnx_migrate.source.modules import Parents
from nnx_migrate.source.walking import each, walk


def is_read_as_filled(cls: ClassInfo, call: ast.Call) -> bool:
    """Whether rounds of ``setup`` append what the call builds, and rounds of a method read it so."""
    parents = cls.module.parents
    append = next((one for one in parents.above(call) if _is_append(one, call)), None)
    if not isinstance(append, ast.Call) or not isinstance(append.func, ast.Attribute):
        return False
    filled = _rounds(parents, append)
    name = ast.unparse(append.func.value)
    setup = cls.methods.get("setup")
    stores = each(setup, ast.Assign) if setup is not None else ()
    attributes = [one.targets[0] for one in stores if ast.unparse(one.value) == name]
    if filled is None or len(attributes) != 1 or not isinstance(attributes[0], ast.Attribute):
        return False
    reads = [
        one
        for owner in cls.mro
        for one in each(owner.node, ast.Attribute)
        if one.attr == attributes[0].attr and isinstance(one.ctx, ast.Load)
    ]
    index = parents.of(reads[0]) if len(reads) == 1 else None
    if not isinstance(index, ast.Subscript):
        return False
    read = _rounds(parents, index)
    return read is not None and read.same_as(filled) and read.counts(index.slice)


def _is_append(node: ast.AST, call: ast.Call) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="append"), args=[value]):
            return value is call
    return False


@dataclass(frozen=True)
class _Rounds:
    """Some rounds of a loop of a method: ``for i in range(n): if test: ...``."""

    method: ast.FunctionDef
    loop: ast.For
    test: ast.If

    def same_as(self, other: _Rounds) -> bool:
        """Whether both run over the same, under the same test."""
        return [*self._texts()] == [*other._texts()]

    def counts(self, index: ast.expr) -> bool:
        """Whether the index is the variable of the loop."""
        return isinstance(index, ast.Name) and ast.dump(self.loop.target) == ast.dump(
            ast.Name(index.id, ast.Store())
        )

    def _texts(self) -> Iterator[str]:
        """The loop and the test, locals that are bound once by their values."""
        values = {**dict(_single_values(self.method)), ast.unparse(self.loop.target): ast.Name("_")}
        for node in (self.loop.iter, self.test.test):
            names = each(node, ast.Name)
            known = {id(one): values[one.id] for one in names if one.id in values}
            yield ast.dump(written_out(node, known))


def _rounds(parents: Parents, node: ast.AST) -> _Rounds | None:
    """The rounds that get to a node: a test alone in a loop alone in a method."""
    above = [one for one in parents.above(node) if isinstance(one, ast.stmt)]
    match [one for one in above if not isinstance(one, ast.Expr | ast.Assign)][:3]:
        case [ast.If(orelse=[]) as test, ast.For() as loop, ast.FunctionDef() as method] if not any(
            isinstance(one, ast.Break | ast.Continue | ast.Return) for one in walk(loop)
        ):
            return _Rounds(method, loop, test)
    return None


def _single_values(method: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Local names that one statement binds, with what it gives them."""
    bound = [name for node in walk(method) for name in names_bound_at(node)]
    for node in each(method, ast.Assign):
        match node.targets:
            case [ast.Name(id=name)] if bound.count(name) == 1:
                yield name, node.value
