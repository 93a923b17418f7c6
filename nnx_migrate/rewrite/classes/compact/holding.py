"""Which names of a compact method hold a submodule that it builds, itself or in something else."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.source.names import root_name
from nnx_migrate.source.walking import each

# Methods that only change the list or dict.
ADDS = frozenset({"add", "append", "appendleft", "extend", "insert", "setdefault", "update"})
Names = tuple[str, ...]
_COLLECT = frozenset({"list", "tuple", "dict", "reversed", "zip", "enumerate", "map", "iter"})


@dataclass(frozen=True)
class SubmoduleFinder:
    """Finds the submodules that a value holds, itself or in a container or another module.

    Attributes:
      wrappers: ids of calls that build modules without variables of their own.
      bindings: names that hold one now.
      called_names: names that the method calls, itself or a part of it, or goes through.
    """

    items: Mapping[int, Item]
    wrappers: Collection[int]
    bindings: dict[str, Item]
    called_names: frozenset[str]

    def by(self, value: ast.expr, names: Names) -> Iterator[tuple[Item, str | None]]:
        """The submodules that a value holds which names are bound to, each with the name it is held by."""
        item = self.items.get(id(value))
        match value:
            case ast.Call() if item is not None and _is_layer(item):
                yield item, None
            case ast.Name(id=name) if name in self.bindings:
                yield self.bindings[name], name
            case _:
                for part in self._parts(value, names):
                    yield from self.by(part, names)

    def is_unknown(self, value: ast.expr) -> bool:
        """Whether a value is what a call returns of which only that is known that it is given."""
        return (
            isinstance(value, ast.Call) and id(value) not in self.wrappers and not _collects(value)
        )

    def _parts(self, value: ast.expr, names: Names) -> Sequence[ast.expr]:
        match value:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
                return parts
            case (
                ast.ListComp(elt=one)
                | ast.GeneratorExp(elt=one)
                | ast.DictComp(value=one)
                | ast.Starred(value=one)
                | ast.Subscript(value=one)
            ):
                return [one]
            case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
                return [one, other]
            case ast.BoolOp(values=parts):
                return parts
            case ast.Call(args=args, keywords=more):
                parts = [*args, *(one.value for one in more)]
                is_called = not self.called_names.isdisjoint(names)
                if is_called or id(value) in self.wrappers or _collects(value):
                    return parts
                # What a function returns that is given one may be an array.
                return [one for one in parts if not isinstance(one, ast.Name)]
        return []


def called_names(method: ast.FunctionDef) -> frozenset[str]:
    """Names that a method calls, themselves or a part of them, or goes through."""
    called = [one.func for one in each(method, ast.Call)]
    rounds = [one.iter for one in each(method, ast.For | ast.comprehension)]
    return frozenset(filter(None, map(root_name, [*called, *rounds])))


def _collects(call: ast.Call) -> bool:
    """Whether a call makes a container of what it is given."""
    return isinstance(call.func, ast.Name) and call.func.id in _COLLECT


def _is_layer(item: Item) -> bool:
    """Whether the value is a submodule with variables; a function that builds returns what it computes."""
    return item.kind is ItemKind.SITE and not item.is_in_scope and not item.free_of_variables
