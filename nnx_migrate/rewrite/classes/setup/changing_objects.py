"""Objects of the project's other classes that ``setup`` makes, and that calls change.

Linen runs ``setup`` anew in each call, so that a table kept in ``self.rotary = Rotary(dim)`` lives for one
call. An NNX module would keep it, also what one trace left there for the next.
"""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

RULE = "setup"
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__setattr__", "__setstate__"})
_MUTATING = frozenset(
    {
        *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"),
        *("reverse", "setdefault", "sort", "update"),
    }
)


def check_objects(project: Project, scope: Scope, value: ast.expr) -> None:
    """Refuse an attribute that holds what its methods change.

    Raises:
      Refused: an object of a class with such a method is made here.
    """
    for node in walk(value):
        if not isinstance(node, ast.Call):
            continue
        symbol = project.resolve(node.func, scope)
        cls = project.classes.get(symbol) if symbol is not None else None
        if cls is not None and not cls.linen and (method := _changing(cls)):
            raise Refused(
                node,
                f"{cls.node.name}.{method} changes its object, which Linen makes anew in each call",
                f"return what {method} keeps",
                RULE,
            )


def _changing(cls: ClassInfo) -> str:
    """The first method that changes its object; empty where none does."""
    for owner in cls.mro:
        for name, method in owner.methods.items():
            if name not in _MAKING and any(map(_is_change, walk(method))):
                return name
    return ""


def _is_change(node: ast.AST) -> bool:
    match node:
        case (
            ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del())
        ):
            return _is_part_of_self(node.value)
        case ast.Call(func=ast.Attribute(value=ast.Attribute() as holder, attr=name)):
            return name in _MUTATING and _is_part_of_self(holder)
    return False


def _is_part_of_self(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"
