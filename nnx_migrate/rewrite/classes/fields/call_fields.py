"""Fields that a constructor only stores: a caller may set them anew for every call.

In Linen ``Block(features, train)(x)`` makes the module in the call, so ``train`` may be an argument
of the call. The migrated module exists before: built with None there, it is called as
``nnm.with_fields(self.Block_0, train=train)(x)``, which shares all variables.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.rewrite.classes.data import ConversionContext
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.taint import Replaced, tainted_name
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import defaults_of
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import is_none_literal, is_self, names_in, walk


def per_call_fields(function: ast.FunctionDef, methods: frozenset[str]) -> frozenset[str]:
    """The parameters that ``__init__`` stores under their names and reads nowhere else.

    Args:
      function: ``__init__``.
      methods: names of the methods and properties of the class: one that ``__init__`` calls may
        read any field.
    """
    stored: set[str] = set()
    read: set[str] = set()
    for statement in function.body:
        match statement:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)],
                value=ast.Name(id=name),
            ) if attr == name and name not in stored:
                stored.add(name)
                continue
        for node in walk(statement):
            match node:
                case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                    read.add(attr)
                case ast.Name(id=name):
                    read.add(name)
    bare = sum(is_self(one) for one in walk(function))
    dotted = sum(isinstance(one, ast.Attribute) and is_self(one.value) for one in walk(function))
    if read & methods or bare != dotted:
        return frozenset()
    parameters = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
    return frozenset((stored & parameters) - read)


def per_call_arguments(
    project: Project,
    item: Item,
    context: ConversionContext,
    tainted_names: frozenset[str],
    init_texts: Replaced,
) -> Mapping[str, ast.expr]:
    """The arguments of a constructor call that depend on the call and may be set late, by field."""
    child = project.linen.get(item.site.symbol or "") if item.site is not None else None
    if child is None or child.name not in context.explicit_classes:
        return {}
    arguments = {
        name: value
        for name, value in child.arguments(item.call).items()
        if tainted_name(value, tainted_names, init_texts)
    }
    if not arguments:
        return {}
    allowed = context.per_call_fields(child.name)
    return {name: value for name, value in arguments.items() if name in allowed}


# ---- fields that the call takes, too: ``nn.merge_param("train", self.train, train)``, as Linen's own layers do

_COPIES = frozenset({"__dict__", "clone", "copy"})  # with all fields


def call_fields(project: Project, cls: ClassInfo) -> frozenset[str]:
    """The fields of which a class reads nothing but what ``nn.merge_param`` makes of each and its namesake.

    To give the one is to give the other: ``Norm(train=train)(x)`` is ``Norm()(x, train=train)``.
    """
    method = cls.methods.get("__call__")
    plain = method is not None and project.decorators(cls, method) in ((), ("flax.linen.compact",))
    if method is None or not plain or len(cls.mro) > 1 or "__post_init__" in cls.methods:
        return frozenset()
    nodes = [node for one in cls.methods.values() for node in walk(one)]
    read = [one.attr for one in nodes if isinstance(one, ast.Attribute) and is_self(one.value)]
    whole = sum(is_self(one) for one in nodes)
    calls = (one for one in nodes if isinstance(one, ast.Call))
    whole -= sum(_makes_parameters(project, cls.scope, one) for one in calls)
    if whole != len(read) or _COPIES & {*read}:
        return frozenset()
    optional = {one.name for one in cls.fields if is_none_literal(one.default)}
    keywords = {one.arg for one in (*method.args.args, *method.args.kwonlyargs)}
    defaults = defaults_of(method.args)
    merged = _merge_names(project, cls, method)
    names = merged & optional & {one for one in keywords if is_none_literal(defaults.get(one))}
    return frozenset(one for one in names if read.count(one) == 1)


def _makes_parameters(project: Project, scope: Scope, call: ast.Call) -> bool:
    """Whether a call of Linen's ``_normalize(self, ...)`` is given the module, to make its parameters there."""
    arguments = [one for one in call.args if is_self(one)]
    return len(arguments) == 1 and project.resolve(call.func, scope) == "flax.linen._normalize"


def _merge_names(project: Project, cls: ClassInfo, method: ast.FunctionDef) -> set[str]:
    """Names that a method reads and binds first in ``train = nn.merge_param("train", self.train, train)``."""
    scope = cls.scope.enter(method)
    visited: set[str] = set()
    found: set[str] = set()
    for statement in method.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=function,
                    args=[
                        ast.Constant(),
                        ast.Attribute(value=ast.Name(id="self"), attr=field),
                        ast.Name(id=default),
                    ],
                    keywords=[],
                ),
            ) if name == field == default and name not in visited:
                if project.resolve(function, scope) == "flax.linen.merge_param":
                    found.add(name)
        visited |= names_in(statement)
    return found
