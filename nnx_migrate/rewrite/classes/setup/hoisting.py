"""Comprehensions of ``setup`` whose sizes change from item to item.

``self.net = nn.Sequential([nn.Dense(n) for n in self.widths])``: a loop before the statement makes the
list, and carries the size that each item hands on. So it is for ``self.layers = [nn.Dense(n) for n in ...]``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import dotted, expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import Statement, assign, loop, run, with_inner_comments
from nnx_migrate.edit.syntax import cst
from nnx_migrate.rewrite.classes.reading.comprehensions import refuse_leaks
from nnx_migrate.rewrite.classes.setup.surroundings import made_of
from nnx_migrate.rewrite.classes.uses.references import Edits
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.sizes.result import ClassSizes, LoopCarry
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import children

RULE = "setup"
_PLAIN = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr
# What may leave out a part of itself, or run it later.
_PARTLY = ast.IfExp | ast.BoolOp | ast.Lambda | ast.DictComp | ast.SetComp


@dataclass(frozen=True)
class Hoisting:
    """Puts loops before the statements of one ``setup``."""

    cls: ClassInfo
    method: ast.FunctionDef
    sizes: ClassSizes
    layout: Layout
    loops: Collection[int]  # comprehensions that became loops already
    lists: set[str] = field(default_factory=set)  # names of those that were made

    def add(self, statement: ast.stmt, edits: Edits) -> None:
        """Make a local list of each such comprehension in ``statement``.

        Raises:
          Refused: a variable of one is read outside of it.
        """
        if not isinstance(statement, _PLAIN) or statement.value is None:
            return
        found = []
        for node in _evaluated(statement.value):
            carried = self.sizes.carried.get(id(node), ())
            if carried and id(node) not in self.loops and not node.generators[0].ifs:
                refuse_leaks(self.method, {id(node): node}, RULE)
                found.append((node, carried, self._local(statement, carried)))
        for one in reversed(found):  # each goes above those behind it
            self._hoist(statement, *one, edits)

    def _hoist(
        self,
        statement: ast.stmt,
        node: ast.ListComp | ast.GeneratorExp,
        carried: tuple[LoopCarry, ...],
        local: str,
        edits: Edits,
    ) -> None:
        previous = edits.get(id(statement))

        def make(renderer: Renderer) -> Sequence[Statement]:
            first = [
                assign(one.name, expression(one.before))
                for one in carried
                if one.before != one.name
            ]
            first.append(assign(local, cst.List([])))
            body = [run(call(f"{local}.append", renderer.render(node.elt)))]
            body += [assign(one.name, expression(one.after)) for one in carried]
            generator = node.generators[0]
            over = renderer.render(generator.iter)
            rounds = loop(renderer.render(generator.target), over, body, self.layout.unit)
            made = [*first, rounds, *made_of(previous, statement, renderer)]
            return with_inner_comments(made, renderer.sources.pairs[id(statement)])

        edits[id(statement)] = make
        edits[id(node)] = lambda renderer: dotted(local)

    def _local(self, statement: ast.stmt, carried: tuple[LoopCarry, ...]) -> str:
        """The list's name: ``layers_list`` for ``self.layers = ...``, else ``x_layers`` by the array."""
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr=attribute)]):
                name = f"{attribute}_list"
            case _:
                name = f"{carried[0].name.removesuffix('_features')}_layers"
        while name in self.cls.local_names | self.lists:
            name += "_"
        self.lists.add(name)
        return name


def _evaluated(value: ast.AST) -> Iterator[ast.ListComp | ast.GeneratorExp]:
    """Comprehensions of one loop that an expression surely evaluates, once."""
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        if len(value.generators) == 1:
            yield value
    elif not isinstance(value, _PARTLY):
        for child in children(value):
            yield from _evaluated(child)
