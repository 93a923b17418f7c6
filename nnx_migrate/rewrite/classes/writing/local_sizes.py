"""Sizes in ``__init__`` by the names that its locals give them, as people write them.

Where ``di = self.d * self.expand`` stands above, ``nnx.Linear(self.d * self.expand, 4, ...)`` becomes ``nnx.Linear(di, 4, ...)``.
A conditional size that several lines read becomes a local of its own: ``features = n * 4 if self.wide else n``.
What the class's own text says stays as its author has it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nnx_migrate.edit.expressions import code_of, dotted_node, tree_of
from nnx_migrate.edit.statements import Statement, assign
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.wrapping import wrap
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.changes import CHANGING
from nnx_migrate.source.names import unused_name
from nnx_migrate.source.walking import children, each, walk

LOCAL = "features"
# What a local may be bound to that sizes are made of.
_NAMED = (ast.Attribute, ast.Subscript, ast.BinOp)
# What an expression may consist of that gives the same wherever it stands and changes nothing.
_PURE = (
    *(ast.Subscript, ast.IfExp, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp),
    *(ast.Name, ast.Constant),
)
_SYMBOLS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
# What runs later, several times or perhaps not: nothing is read off it, and nothing put into it.
_APART = (
    *(ast.Lambda, ast.FunctionDef, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


@dataclass(frozen=True)
class _Line:
    """A statement of ``__init__``, and how Python reads it."""

    statement: Statement
    tree: ast.Module


def with_local_sizes(
    body: Sequence[Statement], own: ast.AST, used_names: Collection[str], layout: Layout
) -> list[Statement]:
    """The statements of ``__init__`` with sizes by the names of locals.

    Args:
      own: the class, whose own text stays.
      used_names: names that no new local may have.
      layout: of the class; what becomes shorter is laid out anew.
    """
    lines = _read_by_name(list(map(_line, body)), own, layout)
    return [one.statement for one in _repeated_named(lines, own, used_names, layout)]


def _line(statement: Statement) -> _Line:
    return _Line(statement, tree_of([statement]))


# ---- locals that are there


def _read_by_name(lines: list[_Line], own: ast.AST, layout: Layout) -> list[_Line]:
    for index, line in enumerate(lines):
        rest = lines[index + 1 :]
        for name, value in _named(line, own):
            if _says(rest, value, own, name):
                lines[index + 1 :] = _with(rest, value, name, layout)
    return lines


def _named(line: _Line, own: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """A local that a line binds to what sizes may be made of, and a parameter ``cfg`` of ``cfg = self.cfg``."""
    match line.tree.body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if isinstance(value, _NAMED):
            yield name, value
        case [ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Name(id=source))]:
            field = ast.parse(f"self.{name}", mode="eval").body
            if name == source and any(_same(one, field) for one in _values(own, name)):
                yield name, field


def _values(own: ast.AST, name: str) -> list[ast.expr]:
    """What the author's plain assignments bind a name to."""
    return [
        one.value
        for one in each(own, ast.Assign)
        if [ast.unparse(target) for target in one.targets] == [name]
    ]


def _says(rest: Sequence[_Line], value: ast.expr, own: ast.AST, name: str) -> bool:
    """Whether the lines have the local's value in other words, which are not the author's."""
    if not any(_has(one, value) for one in rest):
        return False
    bound = any(name in names_bound_below(one.tree) for one in rest)
    named = set(map(id, _values(own, name)))
    is_said = any(_same(one, value) and id(one) not in named for one in each(own, type(value)))
    return not bound and not is_said and _is_same(value, rest)


# ---- locals that are new


def _repeated_named(
    lines: list[_Line], own: ast.AST, used_names: Collection[str], layout: Layout
) -> list[_Line]:
    texts = {ast.dump(one) for one in each(own, ast.IfExp)}
    used = {*used_names, *(name.id for one in lines for name in each(one.tree, ast.Name))}
    while (found := _repetition(lines, texts)) is not None:
        first, size = found
        name = unused_name(LOCAL, used)
        used.add(name)
        texts.add(ast.dump(size))
        made = assign(dotted_node(name), cst.parse_expression(ast.unparse(size)))
        lines[first:] = [_line(made), *_with(lines[first:], size, name, layout)]
    return lines


def _repetition(lines: Sequence[_Line], kept_texts: Collection[str]) -> tuple[int, ast.expr] | None:
    """The first conditional size that is read twice and is the same at every place, and where that begins."""
    count: Counter[str] = Counter()
    where: dict[str, tuple[int, ast.expr]] = {}
    for index, line in enumerate(lines):
        for node in _reads(line.tree, ast.IfExp):
            key = ast.dump(node)
            count[key] += 1
            where.setdefault(key, (index, node))
    for key, (first, node) in where.items():
        is_new = count[key] > 1 and key not in kept_texts
        if is_new and _is_sure(lines[first], node) and _is_same(node, lines[first:]):
            return first, node
    return None


def _is_sure(line: _Line, node: ast.expr) -> bool:
    """Whether the line is a simple one, which evaluates the size whatever else holds."""
    match line.tree.body:
        case [ast.Assign(value=value) | ast.Expr(value=value)]:
            perhaps = (part for one in each(value, ast.BoolOp) for part in walk(one))
            return value is not node and node not in perhaps
    return False


# ---- both


def _has(line: _Line, value: ast.expr) -> bool:
    return any(_same(one, value) for one in _reads(line.tree, type(value)))


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def _reads(tree: ast.AST, kind: type[ast.expr]) -> Iterator[ast.expr]:
    """Expressions of a kind in nothing that runs apart; of conditionals the outermost."""
    ends = (*_APART, ast.IfExp) if kind is ast.IfExp else _APART
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, kind):
            yield node
        if not isinstance(node, ends):
            todo += reversed(children(node))


def _is_same(node: ast.expr, lines: Sequence[_Line]) -> bool:
    """Whether the size is made of numbers that none of these lines changes."""
    names: set[str] = set()
    attributes: set[str] = set()
    todo: list[ast.AST] = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Attribute):
            attributes.add(one.attr)
            todo.append(one.value)
        elif isinstance(one, ast.Name):
            names.add(one.id)
        elif isinstance(one, _PURE):
            todo += children(one)
        elif not isinstance(one, _SYMBOLS):
            return False
    places = [one for line in lines for one in each(line.tree, (ast.Attribute, ast.Subscript))]
    stored = [one for one in places if isinstance(one.ctx, ast.Store | ast.Del)]
    if any(isinstance(one, ast.Subscript) or one.attr in attributes for one in stored):
        return False
    bound = frozenset[str]().union(*(names_bound_below(line.tree) for line in lines))
    return not (names & bound or any(getattr(one, "attr", "") in CHANGING for one in places))


def _with(lines: Sequence[_Line], size: ast.expr, name: str, layout: Layout) -> list[_Line]:
    """The lines with the local in place of the size, laid out anew."""
    key = ast.dump(size)

    class Replace(cst.CSTTransformer):
        depth, has_local = 0, False

        def on_visit(self, node: Any) -> bool:
            self.depth += isinstance(node, cst.IndentedBlock)
            return not isinstance(node, (cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.BaseComp))

        def on_leave(self, original: Any, updated: Any) -> Any:
            self.depth -= isinstance(original, cst.IndentedBlock)
            if isinstance(original, _replaceable()) and _key(original) == key:
                self.has_local = True
                return dotted_node(name)
            if isinstance(original, cst.SimpleStatementLine) and self.has_local:
                self.has_local = False
                indent = layout.body + self.depth * len(layout.unit)
                return wrap(updated, indent, layout.page, is_moved=True)
            return updated

    return [_line(one.statement.visit(Replace())) if _has(one, size) else one for one in lines]


def _replaceable() -> tuple[type, ...]:
    return cst.IfExp, cst.Attribute, cst.Subscript, cst.BinaryOperation


def _key(node: Any) -> str:
    return ast.dump(ast.parse(f"({code_of(node)})", mode="eval").body)
