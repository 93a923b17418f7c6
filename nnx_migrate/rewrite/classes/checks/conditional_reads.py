"""Submodules of ``setup`` that only some calls reach: Linen's ``init`` gives them variables if its own does.

``if train: x = self.late(x)`` makes the parameters of ``late`` when ``init`` is called with ``train=True``;
the NNX module always has them.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from nnx_migrate.rewrite.classes.checks.reviews import Note
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.rewrite.classes.reading.attributes import Attribute
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, walk

RULE = "tied"
PERHAPS_READ = (
    "self.{} is read only where the call decides: Linen's init makes its variables if its own call"
    " gets there, the NNX module has them always"
)


def perhaps_read(
    cls: ClassInfo,
    attributes: Sequence[Attribute],
    items: Mapping[int, Item],
    optional: Collection[str],
) -> Iterator[Note]:
    """The attributes that hold such submodules.

    Args:
      optional: size arguments that callers may leave out; what needs one is built where it is given.

    Raises:
      Refused: the other calls give the submodule parameters, so that Linen's init makes none in them.
    """
    methods = [
        (method, {node.attr for node in each(method, ast.Attribute)})
        for owner in cls.mro
        for name, method in owner.methods.items()
        if name != "setup"
    ]
    for one in attributes:
        built = [items[id(node)] for node in walk(one.value) if id(node) in items]
        always = [item for item in built if _is_always_built(item, optional)]
        every = [
            (_Reads(receiver_of(method), one.name), method.body)
            for method, names in methods
            if one.name in names
        ]
        reads = [is_certain for found, body in every for is_certain in found.block(body, True)]
        if always and reads and not any(reads):
            if any(found.is_applied for found, _ in every):
                raise Refused(
                    one.value,
                    f"self.{one.name} is called in some calls and given parameters in others",
                    "let a field decide which, so that it is known when the class is built",
                    RULE,
                )
            yield one.value, PERHAPS_READ.format(one.name)


def _is_always_built(item: Item, optional: Collection[str]) -> bool:
    if item.kind is not ItemKind.SITE or item.free_of_variables or item.site is None:
        return False
    texts = (ast.parse(text, mode="eval") for text in item.site.sizes.values())
    read = {node.id for one in texts for node in each(one, ast.Name)}
    return item.site.reached is None and not read & {*optional}


class _Reads:
    """For each read of ``self.<name>``, whether every call that gets to its block gets to it."""

    def __init__(self, receiver: str, name: str) -> None:
        self.receiver, self.name = receiver, name
        self.is_applied = False  # to given parameters: that makes no variables

    def block(self, body: Sequence[ast.stmt], is_certain: bool) -> Iterator[bool]:
        """Those in statements that run one after the other."""
        for statement in body:
            yield from self.node(statement, is_certain)
            if isinstance(statement, ast.If) and not self._is_of_fields(statement.test):
                leaves = (isinstance(one, ast.Return) for one in walk(statement))
                is_certain = is_certain and not any(leaves)

    def node(self, node: ast.AST, is_certain: bool) -> Iterator[bool]:
        """Those in a statement or an expression."""
        match node:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=receiver), attr=name), attr="apply"
            ) if (receiver, name) == (self.receiver, self.name):
                self.is_applied = True
            case ast.Attribute(value=ast.Name(id=receiver), attr=name) if (receiver, name) == (
                self.receiver,
                self.name,
            ):
                yield is_certain
            case ast.If(test=test, body=body, orelse=orelse):
                yield from self.node(test, is_certain)
                ways = [list(self.block(one, is_certain)) for one in (body, orelse)]
                yield from self._either(test, ways)
            case ast.IfExp(test=test, body=one, orelse=other):
                yield from self.node(test, is_certain)
                yield from self._either(
                    test, [list(self.node(n, is_certain)) for n in (one, other)]
                )
            case ast.BoolOp(values=[first, *rest]):
                yield from self.node(first, is_certain)
                inner = is_certain and self._is_of_fields(first)
                yield from (read for one in rest for read in self.node(one, inner))
            case ast.match_case() | ast.While():
                yield from (r for one in ast.iter_child_nodes(node) for r in self.node(one, False))
            case _:
                yield from (
                    read
                    for one in ast.iter_child_nodes(node)
                    for read in self.node(one, is_certain)
                )

    def _either(self, test: ast.expr, ways: list[list[bool]]) -> Iterator[bool]:
        is_certain = self._is_of_fields(test) or all(any(way) for way in ways)
        yield from (read and is_certain for way in ways for read in way)

    def _is_of_fields(self, test: ast.expr) -> bool:
        """Whether the class's fields decide; calls of functions do not change that."""
        called = {id(one.func) for one in each(test, ast.Call)}
        names = each(test, ast.Name)
        return all(one.id == self.receiver or id(one) in called for one in names)
