"""Fields that build modules of classes which nobody knows: ``block: Any``, ``self.block(8)(x)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.sizes.annotations import says_module
from nnx_migrate.source.classes import ClassInfo, Field, arguments_by_field
from nnx_migrate.source.growth import reachable
from nnx_migrate.source.names import name_parts
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_none_literal, walk


def is_called_twice(info: ClassInfo, name: str) -> bool:
    """Whether ``self.name(...)(...)`` occurs: the field is a factory of modules."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Call)
        and name_parts(node.func.func) == ("self", name)
        for cls in info.mro
        for node in walk(cls.node)
    )


def builds_from(project: Project, info: ClassInfo, name: str) -> bool:
    """Whether a class calls what calls of a field give, or hands it to a module, and does no more with the field.

    ``self.block(8)(x)``, ``self.body = self.block(8)``. Of ``self.block is Wide`` the answer would be another
    one where the field holds the other form of a class.
    """
    return _is_used(project, info, name) and _is_read_plainly(project, info, name)


def _is_used(project: Project, info: ClassInfo, name: str) -> bool:
    """Whether a class calls what calls of a field give, or hands it to a module."""
    return is_called_twice(info, name) or any(
        _is_module(project, info, one) for one in _made_from(info, name)
    )


def _is_read_plainly(project: Project, info: ClassInfo, name: str) -> bool:
    """Whether a class does no more with a field than to call it, hand it on, or ask whether it is None."""
    return all(_is_plain(project, *read) for read in _reads(info, name))


def openable(project: Project, cls: str, name: str) -> frozenset[tuple[str, str]]:
    """A field of a class, and those that it is handed on to, if all may build modules of any class; else none."""

    def onward(at: tuple[str, str]) -> list[tuple[str, str]]:
        return [*_hands_on(project, project.linen[at[0]], at[1])]

    def may_open(at: tuple[str, str]) -> bool:
        info = project.linen[at[0]]
        is_used = bool(onward(at)) or _is_used(project, info, at[1])
        return is_used and _is_read_plainly(project, info, at[1])

    found = reachable([(cls, name)], onward)
    return frozenset(found) if all(map(may_open, found)) else frozenset()


def _hands_on(project: Project, info: ClassInfo, name: str) -> Iterator[tuple[str, str]]:
    """The classes and fields that a class hands a field on to: ``Block(norm=self.norm)``."""
    for cls, node in _reads(info, name):
        parents = cls.module.parents
        above = parents.of(node)
        call = parents.of(above) if isinstance(above, ast.keyword) else above
        if not isinstance(call, ast.Call):
            continue
        taker = project.linen.get(project.resolve(call.func, cls.scope) or "")
        if taker is not None:
            field_values = arguments_by_field(taker, call.args, call.keywords)
            yield from (
                (taker.name, field) for field, value in field_values if value is node and field
            )


def _made_from(info: ClassInfo, name: str) -> Iterator[ast.expr]:
    """The calls of a field, and the names that are bound to them."""
    for cls in info.mro:
        for node in each(cls.node, ast.Call):
            if name_parts(node.func) == ("self", name):
                yield node
                parents = cls.module.parents
                above = parents.of(node)
                while isinstance(above, ast.IfExp):  # self.norm() if self.norm else None
                    above = parents.of(above)
                yield from above.targets if isinstance(above, ast.Assign) else ()


def _is_module(project: Project, info: ClassInfo, expression: ast.expr) -> bool:
    """Whether something that is read of a name is called, or given to a field that holds a module."""
    words = name_parts(expression)
    for cls in info.mro:
        for call in each(cls.node, ast.Call):
            if words is not None and name_parts(call.func) == words:
                return True
            taker = project.linen.get(project.resolve(call.func, cls.scope) or "")
            if taker is None:
                continue
            fields = {one.name: one for one in taker.fields}
            for name, value in arguments_by_field(taker, call.args, call.keywords):
                is_given = value is expression or (words is not None and name_parts(value) == words)
                if is_given and name in fields and _holds_module(project, taker, fields[name]):
                    return True
    return False


def _holds_module(project: Project, cls: ClassInfo, one: Field) -> bool:
    """Whether a field says that it holds a module, or is called."""
    calls = (call.func for owner in cls.mro for call in each(owner.node, ast.Call))
    return says_module(project, one) or any(
        name_parts(called) == ("self", one.name) for called in calls
    )


def _reads(info: ClassInfo, name: str) -> Iterator[tuple[ClassInfo, ast.Attribute]]:
    for cls in info.mro:
        for node in each(cls.node, ast.Attribute):
            if name_parts(node) == ("self", name) and isinstance(node.ctx, ast.Load):
                yield cls, node


def _is_plain(project: Project, cls: ClassInfo, node: ast.Attribute) -> bool:
    """Whether a field is called, handed on as it is, or asked whether it is None."""
    match cls.module.parents.of(node):
        case ast.Call(func=function) as call:
            return function is node or _takes_classes(project, cls, call)
        case ast.keyword() as keyword:
            taker = cls.module.parents.of(keyword)
            return isinstance(taker, ast.Call) and _takes_classes(project, cls, taker)
        case ast.Compare(comparators=others):
            return all(map(is_none_literal, others))
        case ast.If() | ast.IfExp() | ast.BoolOp() | ast.UnaryOp():
            return True
    return False


def _takes_classes(project: Project, cls: ClassInfo, call: ast.Call) -> bool:
    symbol = project.resolve(call.func, cls.scope)
    return symbol == "functools.partial" or symbol in project.linen
