"""Comprehensions of ``setup`` whose sizes change from item to item.

``self.net = nn.Sequential([nn.Dense(n) for n in self.widths])``: a loop before the statement makes the
list, and carries the size that each item hands on. So it is for ``self.layers = [nn.Dense(n) for n in ...]``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import dotted_node
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import Statement, assign, loop, run, with_inner_comments
from nnx_migrate.edit.syntax import cst
from nnx_migrate.rewrite.classes.reading.comprehensions import refuse_leaks
from nnx_migrate.rewrite.classes.setup.lists import free_local
from nnx_migrate.rewrite.classes.setup.surroundings import made_of
from nnx_migrate.rewrite.classes.uses.references import Edits
from nnx_migrate.rewrite.classes.writing.carrying import starts, updates
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.sizes.result import ClassSizes, LoopCarry
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import children

RULE = "setup"
_PLAIN = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr
# What may leave out a part of itself, or run it later.
_PARTLY = ast.IfExp | ast.BoolOp | ast.Lambda | ast.DictComp | ast.SetComp


@dataclass(frozen=True)
class _Rounds:
    """A comprehension that becomes a loop, and those inside of its element."""

    node: ast.ListComp | ast.GeneratorExp
    loop_carries: tuple[LoopCarry, ...]
    inner: tuple[_Rounds, ...]
    name: str  # of the list that it makes


@dataclass(frozen=True)
class Hoisting:
    """Puts loops before the statements of one ``setup``."""

    cls: ClassInfo
    method: ast.FunctionDef
    sizes: ClassSizes
    layout: Layout
    loops: Collection[int]  # comprehensions that became loops already
    names: set[str] = field(default_factory=set)  # of the lists

    def add(self, statement: ast.stmt, edits: Edits) -> None:
        """Make a local list of each such comprehension in ``statement``.

        Raises:
          Refused: a variable of one is read outside of it.
        """
        if not isinstance(statement, _PLAIN) or statement.value is None:
            return
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr=attribute)]):
                name = f"{attribute}_list"
            case _:
                name = ""
        for one in reversed([*self._rounds_in(statement.value, name)]):  # above those behind it
            self._hoist(statement, one, edits)

    def _rounds_in(self, value: ast.AST, name: str = "") -> Iterator[_Rounds]:
        for node in _sure_comprehensions(value):
            inner = tuple(self._rounds_in(node.elt))
            loop_carries = self.sizes.loop_carries.get(id(node), ())
            if (loop_carries or inner) and id(node) not in self.loops:
                refuse_leaks(self.method, {id(node): node}, RULE)
                sizes = [*loop_carries, *(size for one in inner for size in one.loop_carries)]
                yield _Rounds(node, loop_carries, inner, self._free(name, sizes))

    def _free(self, name: str, sizes: Sequence[LoopCarry]) -> str:
        """A name for a list: ``layers_list`` for ``self.layers = ...``, else ``x_layers`` by the array."""
        stem = name or f"{sizes[0].name.removesuffix('_features')}_layers"
        free = free_local(self.cls, stem, self.names)
        self.names.add(free)
        return free

    def _hoist(self, statement: ast.stmt, rounds: _Rounds, edits: Edits) -> None:
        previous = edits.get(id(statement))

        def make(renderer: Renderer) -> Sequence[Statement]:
            made = [*self._loop(rounds, renderer), *made_of(previous, statement, renderer)]
            return with_inner_comments(made, renderer.sources.pairs[id(statement)])

        edits[id(statement)] = make
        for one in _all_of(rounds):
            edits[id(one.node)] = lambda renderer, name=one.name: dotted_node(name)  # type: ignore[misc]

    def _loop(self, one: _Rounds, renderer: Renderer) -> list[Statement]:
        """The list's loop, and what each round of it carries on."""
        before = starts(size for size in one.loop_carries if size.before != size.name)
        inner = [made for part in one.inner for made in self._loop(part, renderer)]
        added = run(call(f"{one.name}.append", renderer.render(one.node.elt)))
        (generator,) = one.node.generators
        target, over = renderer.render(generator.target), renderer.render(generator.iter)
        rounds = loop(target, over, [*inner, added, *updates(one.loop_carries)], self.layout.unit)
        return [*before, assign(one.name, cst.List([])), rounds]


def _all_of(rounds: _Rounds) -> Iterator[_Rounds]:
    yield rounds
    for one in rounds.inner:
        yield from _all_of(one)


def _sure_comprehensions(value: ast.AST) -> Iterator[ast.ListComp | ast.GeneratorExp]:
    """Comprehensions of one loop, whole, that an expression surely evaluates, once."""
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        if len(value.generators) == 1 and not value.generators[0].ifs:
            yield value
    elif not isinstance(value, _PARTLY):
        for child in children(value):
            yield from _sure_comprehensions(child)
