"""Questions of what kind of object a submodule is: ``type(self.proj) is nn.Dense``, ``hasattr(layer, "features")``.

NNX's layers are of other classes, with other attributes. Only ``isinstance`` of classes that its own text names
is asked of NNX's in their place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.rewrite.classes.reading.holders import Holders, methods_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.modules import FUNCTIONS
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

_ASKS = frozenset({"dir", "getattr", "hasattr", "type", "vars"})


def check_kinds(project: Project, cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse such questions, also of a function that is given the submodule.

    Raises:
      Refused: NNX's layer may answer otherwise.
    """
    sites = {key for key, one in items.items() if one.kind is ItemKind.SITE}
    holders = Holders(cls, sites)
    for method in methods_of(cls):
        for node in _questions(project, cls, method, holders):
            raise Refused(
                node,
                "it asks what kind of object a submodule is, and NNX's is another",
                "ask isinstance of classes by their names",
                "module-api",
            )


def _questions(
    project: Project, cls: ClassInfo, method: ast.FunctionDef, holders: Holders
) -> Iterator[ast.AST]:
    scope = cls.scope.enter(method)
    for node in walk(method):
        match node:
            case ast.Attribute(value=owner, attr="__class__") if holders.has(owner, method):
                yield node
            case ast.Call(func=ast.Name(id=name), args=[asked, *_]) if name in _ASKS:
                if holders.has(asked, method):
                    yield node
            case ast.Call(func=ast.Name(id="isinstance"), args=[asked, kinds]):
                if holders.has(asked, method) and not _are_named(project, scope, kinds):
                    yield node
            case ast.Call():
                given = [*node.args, *(one.value for one in node.keywords)]
                if any(holders.has(one, method) for one in given):
                    yield from _asked_by(project, cls, method, node)


def _are_named(project: Project, scope: Scope, kinds: ast.expr) -> bool:
    """Whether classes are named where they are asked for: ``(nn.Dense, Block)``, ``nn.Dense | Block``."""
    match kinds:
        case ast.Tuple(elts=parts):
            return all(_are_named(project, scope, one) for one in parts)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _are_named(project, scope, left) and _are_named(project, scope, right)
        case ast.Name() | ast.Attribute():
            symbol = project.resolve(kinds, scope)
            if symbol is None:
                return isinstance(kinds, ast.Name) and scope.lookup(kinds.id) is None  # a builtin
            is_class = is_linen(symbol) or symbol in project.linen or symbol in project.classes
            return is_class or project.split(symbol)[0] is None
    return False


def _asked_by(
    project: Project, cls: ClassInfo, method: ast.FunctionDef, call: ast.Call
) -> Iterator[ast.AST]:
    """The questions of the function or method that a call in a method runs."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == "self":
            found = cls.find(attr)
            if found is not None:
                yield from _own_questions(found[1], is_method=True)
            return
        case ast.Name(id=name) if inner := [
            one for one in each(method, ast.FunctionDef) if one.name == name
        ]:
            for one in inner:
                yield from _own_questions(one, is_method=True)
        case ast.Name() | ast.Attribute():
            symbol = project.resolve(call.func, cls.scope.enter(method))
            definition = project.definition(symbol) if symbol is not None else None
            if definition is not None and isinstance(definition[1], FUNCTIONS):
                yield from (call for _ in _own_questions(definition[1]))


def _own_questions(function: FunctionNode, *, is_method: bool = False) -> Iterator[ast.AST]:
    """The questions that a function asks of what it is given; a method's ``isinstance`` is NNX's."""
    words = _ASKS if is_method else _ASKS | {"isinstance"}
    own = {receiver_of(function)} if is_method and isinstance(function, ast.FunctionDef) else set()
    given = {one.arg for one in each(function.args, ast.arg)} - own
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[asked, *_]) if name in words:
                if any(one.id in given for one in each(asked, ast.Name)):
                    yield node
            case ast.Attribute(value=ast.Name(id=name), attr="__class__") if name in given:
                yield node
