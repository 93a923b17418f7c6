"""What constructor calls of the project give fields, and where that is a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from nnx_migrate.sizes.return_values import is_module_class
from nnx_migrate.source.classes import arguments_by_field
from nnx_migrate.source.linen_modules import linen_modules
from nnx_migrate.source.names import Assignment, last_name
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, walk

Field = tuple[str, str]  # a class and its field
FieldArgument = tuple[
    ast.expr, Scope, ast.ClassDef | None
]  # a value, where it stands, and the class there
COPYING = frozenset({"clone", "copy", "replace"})  # an object, with other values for some fields


@lru_cache(maxsize=2)  # every analysis of a project asks
def fields_with_modules(project: Project) -> frozenset[Field]:
    """Classes and their fields that a constructor call gives a module, or what holds one.

    ``Block(act=Dense(3))`` is one, and so is ``Block(act=self.mix)`` where `setup` makes ``mix`` a module.
    """
    return frozenset(
        field
        for field, values in field_arguments(project).items()
        if any(_holds_module(project, *one) for one in values)
    )


def values_of_field(project: Project, field: Field) -> Iterator[ast.expr]:
    """What constructor calls give a field."""
    return (value for value, _, _ in field_arguments(project).get(field, ()))


@lru_cache(maxsize=2)
def field_arguments(project: Project) -> Mapping[Field, list[FieldArgument]]:
    """What calls give each field of every class that has it; under "" what nobody knows the field of."""
    found: dict[Field, list[FieldArgument]] = {}
    linked = linen_modules(project)
    for module in project.modules.values():
        for node in module.nodes if module.name in linked else ():
            if not isinstance(node, ast.Call) or not (node.args or node.keywords):
                continue
            scope, around = Scope(module).around(node), module.parents.class_of(node)
            for field, value in _arguments_of_call(project, node, scope):
                found.setdefault(field, []).append((value, scope, around))
    return found


def _arguments_of_call(
    project: Project, call: ast.Call, scope: Scope
) -> Iterator[tuple[Field, ast.expr]]:
    """The fields that a call sets of the class that it builds, or whose object it copies with others."""
    symbol, args = constructor_call(project, scope, call)
    cls = project.linen.get(symbol or "")
    if cls is None:
        named = {one.arg: one.value for one in call.keywords if one.arg is not None}
        for one in project.linen.values() if named and last_name(call.func) in COPYING else ():
            own = (field.name for field in one.fields)
            yield from (((one.name, name), named[name]) for name in own if name in named)
        return
    plain = [one for one in call.keywords if one.arg is not None]
    for name, value in arguments_by_field(cls, args, [*plain, *dict_keywords(call, scope)]):
        yield from (((owner.name, name), value) for owner in cls.mro)


def constructor_call(
    project: Project, scope: Scope, call: ast.Call
) -> tuple[str | None, list[ast.expr]]:
    """What a call builds, also by a partial, and what it is given by place."""
    symbol, args = project.resolve(call.func, scope), list(call.args)
    if symbol == "functools.partial" and args:
        symbol = project.resolve(args.pop(0), scope)
    match project.definition(symbol) if symbol else None:
        case (Module() as home, ast.Call(args=[_, *_]) as made):  # ``Tanh = partial(Normal, True)``
            inner, before = constructor_call(project, Scope(home), made)
            if project.resolve(made.func, Scope(home)) == "functools.partial":
                return inner, [*before, *args]
    return symbol, args


def dict_keywords(call: ast.Call, scope: Scope) -> Iterator[ast.keyword]:
    """What a call takes out of dicts: ``Net(**kw)`` after ``kw = {"width": 3}``.

    And each dict without a name: it may have been changed in between, or be made elsewhere.
    """
    for one in call.keywords:
        if one.arg is not None:
            continue
        yield one
        value: ast.AST = one.value
        if isinstance(value, ast.Name):
            binding = scope.lookup(value.id)
            value = binding.value if isinstance(binding, Assignment) else value
        match value:
            case ast.Dict(keys=keys, values=values):
                for key, given in zip(keys, values, strict=True):
                    name = key.value if isinstance(key, ast.Constant) else None
                    yield ast.keyword(name if isinstance(name, str) else None, given)
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                yield from keywords


def _holds_module(
    project: Project, value: ast.expr, scope: Scope, around: ast.ClassDef | None
) -> bool:
    """Whether an expression builds a module, or names what was assigned one."""
    assigned: list[ast.expr] = [value]
    for node in walk(value):
        match node:
            case ast.Name(id=name):
                match scope.lookup(name):
                    case Assignment(value=found):
                        assigned.append(found)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if around is not None:
                assigned += _attribute_values(around, name)
    return any(_builds(project, one, scope) for one in assigned)


def _builds(project: Project, value: ast.expr, scope: Scope) -> bool:
    calls = (one.func for one in each(value, ast.Call))
    return any(is_module_class(project, project.resolve(one, scope)) for one in calls)


def _attribute_values(cls: ast.ClassDef, name: str) -> Iterator[ast.expr]:
    """What methods assign to ``self.name``."""
    for node in walk(cls):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)], value=value
            ) if attribute == name:
                yield value
