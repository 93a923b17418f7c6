"""A conditional size that ``__init__`` would read several times is a local, as people write it.

``nnx.Conv(n * 4 if self.wide else n, n * 4 if self.wide else n, ...)`` becomes ``features = n * 4 if self.wide else n``
and ``nnx.Conv(features, features, ...)``. Conditionals of the class's own text stay as their author has them.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nnx_migrate.edit.expressions import code_of, dotted, tree_of
from nnx_migrate.edit.statements import Statement, assign
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.wrapping import wrapped
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.walking import children, each, walk

LOCAL = "features"
# What an expression may consist of, that gives the same wherever it stands and changes nothing.
_PURE = (ast.IfExp, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant)
_SYMBOLS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
# What runs later, several times or perhaps not: nothing is read off it, and nothing put into it.
_APART = (
    *(ast.Lambda, ast.FunctionDef, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def with_repeated_sizes_named(
    body: Sequence[Statement], own: ast.AST, taken: Collection[str], layout: Layout
) -> list[Statement]:
    """The statements of ``__init__`` with a local for each conditional size that they read twice.

    Args:
      own: the class, whose own conditionals stay.
      taken: names that no local may have.
      layout: of the class; what becomes shorter is laid out anew.
    """
    found = list(body)
    kept = {ast.dump(one) for one in each(own, ast.IfExp)}
    used = {*taken, *(one.id for one in each(tree_of(found), ast.Name))}
    while (repeated := _repeated(found, kept)) is not None:
        name = _unused(used)
        used.add(name)
        kept.add(repeated.key)
        first = repeated.first
        rest = [_replaced(one, repeated.key, name, layout) for one in found[first:]]
        found[first:] = [assign(dotted(name), repeated.node), *rest]
    return found


@dataclass(frozen=True)
class _Repeated:
    """A size: its ``key``, and the index of the statement that reads it ``first``."""

    key: str
    first: int
    node: Any


def _repeated(body: Sequence[Statement], kept: Collection[str]) -> _Repeated | None:
    """The first conditional size that is read twice and is the same at every place."""
    trees = [tree_of([one]) for one in body]
    count: Counter[str] = Counter()
    where: dict[str, tuple[int, ast.IfExp]] = {}
    for index, tree in enumerate(trees):
        for node in _outermost(tree):
            key = ast.dump(node)
            count[key] += 1
            where.setdefault(key, (index, node))
    for key, (first, node) in where.items():
        is_new = count[key] > 1 and key not in kept
        if is_new and _is_sure(trees[first], node) and _is_same(node, trees[first:]):
            return _Repeated(key, first, cst.parse_expression(ast.unparse(node)))
    return None


def _outermost(tree: ast.AST) -> Iterator[ast.IfExp]:
    """Conditionals that stand in no other one and in nothing that runs apart."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.IfExp):
            yield node
        elif not isinstance(node, _APART):
            todo = [*children(node), *todo]


def _is_sure(tree: ast.Module, node: ast.IfExp) -> bool:
    """Whether the statement is a simple one, which evaluates the size whatever else holds."""
    (statement,) = tree.body if len(tree.body) == 1 else (ast.Pass(),)
    if (
        not isinstance(statement, ast.Assign | ast.Expr)
        or getattr(statement, "value", None) is node
    ):
        return False
    around = [one for one in each(statement, ast.BoolOp) if node in walk(one)]
    return not around


def _is_same(node: ast.IfExp, trees: Sequence[ast.Module]) -> bool:
    """Whether the size is made of numbers that none of these statements changes."""
    names: set[str] = set()
    attributes: set[str] = set()
    todo: list[ast.AST] = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self":
            attributes.add(one.attr)
        elif isinstance(one, ast.Name):
            names.add(one.id)
        elif isinstance(one, _PURE):
            todo += children(one)
        elif not isinstance(one, _SYMBOLS):
            return False
    bound = frozenset[str]().union(*map(names_bound_below, trees))
    stored = {
        one.attr
        for tree in trees
        for one in each(tree, ast.Attribute)
        if isinstance(one.ctx, ast.Store)
    }
    return not (names & bound or attributes & stored)


def _replaced(statement: Statement, key: str, name: str, layout: Layout) -> Statement:
    """The statement with the local in place of the size; lines with it are laid out anew."""

    class Replace(cst.CSTTransformer):
        depth, has_local = 0, False

        def on_visit(self, node: Any) -> bool:
            self.depth += isinstance(node, cst.IndentedBlock)
            return not isinstance(node, (cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.BaseComp))

        def on_leave(self, original: Any, updated: Any) -> Any:
            self.depth -= isinstance(original, cst.IndentedBlock)
            if isinstance(original, cst.IfExp) and _key(original) == key:
                self.has_local = True
                return dotted(name)
            if isinstance(original, cst.SimpleStatementLine) and self.has_local:
                self.has_local = False
                indent = layout.body + self.depth * len(layout.unit)
                return wrapped(updated, indent, layout.page, is_moved=True)
            return updated

    return statement.visit(Replace())


def _key(node: Any) -> str:
    return ast.dump(ast.parse(f"({code_of(node)})", mode="eval").body)


def _unused(taken: Collection[str]) -> str:
    number = 1
    while (name := LOCAL if number == 1 else f"{LOCAL}_{number}") in taken:
        number += 1
    return name
