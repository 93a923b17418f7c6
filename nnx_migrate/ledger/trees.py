"""Walking syntax trees: the fields that can hold nodes, looked up once per kind of node.

The rewriter has such a walk too. This one is the ledger's own, as all that it counts by is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

# What holds no nodes: names, flags, numbers.
_LEAVES = frozenset({ast.Constant, ast.Global, ast.Nonlocal})
_PLAIN = frozenset(
    {"arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level"}
    | {"module", "rest", "simple", "type_comment"}
)


class _Fields(dict[type, tuple[str, ...]]):
    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        names = () if kind in _LEAVES else kind._fields
        self[kind] = tuple(name for name in names if name not in _PLAIN)
        return self[kind]


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below one, in the order of the text; no ``Load``, ``Store`` or ``Del``."""
    found: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += value if None not in value else [one for one in value if one is not None]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(tree: ast.AST) -> list[ast.AST]:
    """A node and all that is below it."""
    found = [tree]
    for node in found:
        found += children(node)
    return found


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a module, those inside its conditionals, loops and ``try`` one by one."""
    for node in children(tree):
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While | ast.ExceptHandler):
            yield from statements(node)
        elif isinstance(node, ast.stmt):
            yield node
