"""What ``:=`` binds on the way: ``__init__`` binds it in a statement of its own before.

``width = (n := n + 1) + 2`` becomes ``n = n + 1; width = n + 2``: as it stands it would count twice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from nnx_migrate.edit.expressions import Expression, dotted
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.evaluation import COMPREHENSIONS
from nnx_migrate.rewrite.classes.reading.flow import Bind, Branch, Build, Loop, Step, binds
from nnx_migrate.source.walking import each, walk


def bound_before(kept: Sequence[Step]) -> dict[int, Expression]:
    """Edits of the expressions that ``kept`` binds before the text around them: their names.

    Raises:
      Refused: the text also reads what the name held before, or binds it once for each item.
    """
    early = {id(one.node): one.node for one in binds(kept) if isinstance(one.node, ast.NamedExpr)}
    for text in _texts(kept) if early else ():
        for one in each(text, ast.NamedExpr):
            if id(one) in early and not _may_come_first(one, text):
                raise Refused(
                    one,
                    f"{one.target.id!r} is bound on the way, and read or bound again around that",
                    "bind it in a statement of its own",
                    "compact",
                )
    return {key: dotted(node.target.id) for key, node in early.items()}


def check_read(method: ast.FunctionDef, items: Iterable[Item]) -> None:
    """What is bound in the arguments of a layer moves to ``__init__`` with them.

    Raises:
      Refused: the call reads it, too.
    """
    calls = [one.call for one in items]
    gone = {id(node) for one in calls for node in walk(one)}
    loads = [one for one in each(method, ast.Name) if isinstance(one.ctx, ast.Load)]
    read = {one.id for one in loads if id(one) not in gone}
    for bound in (node for one in calls for node in each(one, ast.NamedExpr)):
        if bound.target.id in read:
            raise Refused(
                bound,
                f"the call reads {bound.target.id!r}, which is bound where a layer is built",
                "bind it in a statement of its own",
                "compact",
            )


def _may_come_first(bound: ast.NamedExpr, text: ast.AST) -> bool:
    if any(
        bound is node for one in each(text, COMPREHENSIONS) for node in each(one, ast.NamedExpr)
    ):
        return False
    own = {id(one) for one in each(bound.value, ast.Name)}
    loads = (one for one in each(text, ast.Name) if isinstance(one.ctx, ast.Load))
    reads = (one for one in loads if one.id == bound.target.id and id(one) not in own)
    return all(_place(one) > _place(bound) for one in reads)


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _texts(steps: Sequence[Step]) -> Iterator[ast.AST]:
    """What is written as it stands."""
    for step in steps:
        match step:
            case Build(item=item):
                yield item.call
            case Bind(node=ast.NamedExpr(value=value)):
                yield value
            case Bind(node=node):
                yield node
            case Branch(test=test, body=body, orelse=orelse):
                yield test
                yield from _texts((*body, *orelse))
            case Loop(iterable=iterable, body=body):
                yield iterable
                yield from _texts(body)
