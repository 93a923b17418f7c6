"""Which expressions may be a submodule, wherever a name or attribute may hold one.

`children` finds those that are certainly one; this is for what must not happen to any.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.source.bindings import bindings_below, changed_names, loop_pairs
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.growth import grown
from nnx_migrate.source.walking import each, walk


def _bindings(method: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What a method binds and the value it gets; of a loop over pairs, each to its own."""
    loops = {id(one.target) for one in each(method, ast.For | ast.comprehension)}
    for target, value in bindings_below(method):
        if id(target) in loops and isinstance(target, ast.expr) and isinstance(value, ast.expr):
            yield from loop_pairs(target, value)
        else:
            yield target, value


class Holders:
    """Expressions of a class that may be one of some submodules, or hold some."""

    def __init__(
        self, cls: ClassInfo, calls: Collection[int], fields: Collection[str] = ()
    ) -> None:
        """Start with the submodules that calls, by id, build, and those that fields are given."""
        self._cls = cls
        self._calls = calls
        self._attributes = frozenset(fields)
        self._names: dict[int, frozenset[str]] = {}
        while (wider := self._attributes | {*self._held_attributes()}) != self._attributes:
            self._attributes = frozenset(wider)
            self._names = {}

    def _held_attributes(self) -> Iterator[str]:
        for method in self._cls.every_method:
            receiver = receiver_of(method)
            for target, value in _bindings(method):
                for node in walk(target):
                    match node:
                        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                            if self.has(value, method):
                                yield attr

    def has(self, node: ast.AST, method: ast.FunctionDef) -> bool:
        """Whether a value is a submodule, or holds one."""
        return self._has(node, receiver_of(method), self._local(method))

    def _local(self, method: ast.FunctionDef) -> frozenset[str]:
        if id(method) not in self._names:
            receiver, pairs = receiver_of(method), [*_bindings(method)]
            names = grown(
                (),
                lambda known: (
                    name
                    for target, value in pairs
                    if self._has(value, receiver, known)
                    for name in changed_names(target)
                ),
            )
            self._names[id(method)] = names - {receiver}
        return self._names[id(method)]

    def _has(self, node: ast.AST, receiver: str, names: Collection[str]) -> bool:
        match node:
            case ast.Name(id=name):
                return name in names
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                return attr in self._attributes
            case ast.Call() if id(node) in self._calls:
                return True
        return any(self._has(one, receiver, names) for one in held_parts(node))
