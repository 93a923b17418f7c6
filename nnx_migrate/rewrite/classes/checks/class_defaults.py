"""Defaults of fields that are read off the class: ``type(self).width``, by methods or by dataclass itself.

A dataclass keeps them as attributes; the constructor of an NNX class has them in its signature.
"""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_name, walk

_LOOKS = frozenset({"isinstance", "issubclass", "print", "repr", "str", "super"})


def check_class_defaults(project: Project, cls: ClassInfo) -> None:
    """Refuse methods that read one, or hand their class on to what may.

    Raises:
      Refused: one does.
    """
    fields = cls.field_names
    own = {one.name for one in cls.mro}
    for method in cls.methods.values() if fields else ():
        is_of_class = "classmethod" in project.decorators(cls, method)
        name = receiver_of(method) if is_of_class else ""
        scope = cls.scope.enter(method)
        for node in each(method, ast.Attribute):
            is_class = is_name(node.value, name) or _is_type_of_self(node.value)
            if node.attr in fields and (is_class or project.resolve(node.value, scope) in own):
                raise _read(node, f"the default of {node.attr!r}")
        for one in walk(method):
            if _is_type_of_self(one) and _is_handed_on(cls.module.parents.of(one), one):
                raise _read(one, "attributes of its class, perhaps the default of a field")


def check_declared_anew(cls: ClassInfo) -> None:
    """Refuse a field of a base that the class takes for a class variable, or declares without its default.

    ``width: int`` over a base's ``width: int = 3`` keeps 3: a dataclass asks the class for its attribute.

    Raises:
      Refused: one is.
    """
    bases = cls.mro[1:]
    inherited = {one.name for base in bases if base.linen for one in base.own_fields}
    own = {one.name: one for one in cls.own_fields}
    for statement in cls.node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) if name in inherited - own.keys():
                reason = f"it makes {name!r}, a field of its base, an attribute of the class"
                recipe = "give the attribute another name, or the field another default"
                raise ClassRefused(statement, reason, recipe, "fields")
    for name, one in own.items():
        base = next((base for base in bases if name in base.bound), None)
        if one.node.value is None and base is not None and name not in base.methods:
            reason = f"it declares {name!r} without a default, and keeps that of {base.name}"
            raise ClassRefused(one.node, reason, "repeat the default", "fields")


def _is_type_of_self(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name("self"), attr="__class__"):
            return True
        case ast.Call(func=ast.Name("type"), args=[ast.Name("self")]):
            return True
    return False


def _is_handed_on(around: ast.AST | None, node: ast.AST) -> bool:
    match around:
        case ast.Assign() | ast.Return():
            return True
        case ast.Call(func=called):
            return called is not node and ast.unparse(called) not in _LOOKS
    return False


def _read(node: ast.AST, what: str) -> ClassRefused:
    reason = f"it reads {what}, which only Linen's class has"
    return ClassRefused(node, reason, "make it a constant of the class", "fields")
