"""Objects of the project's plain classes whose methods change them."""

from __future__ import annotations

import ast

from nnx_migrate.source.changes import CHANGING
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import root_name
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__setattr__", "__setstate__"})


def plain_class(project: Project, scope: Scope, node: ast.Call) -> ClassInfo | None:
    """The class of the project, none of Linen's, of which a call makes an object."""
    symbol = project.resolve(node.func, scope)
    cls = project.classes.get(symbol) if symbol is not None else None
    return cls if cls is not None and not cls.linen else None


def changing_method(cls: ClassInfo) -> str:
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
            return root_name(node.value) == "self"
        case ast.Call(func=ast.Attribute(value=ast.Attribute() as holder, attr=name)):
            return name in CHANGING and root_name(holder) == "self"
        case ast.Call(func=ast.Name(id="next"), args=[ast.Attribute() as holder, *_]):
            return root_name(holder) == "self"
    return False
