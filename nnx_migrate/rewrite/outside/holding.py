"""Fields of converted classes that hold modules, classes of modules, or what builds them.

An explicit class gives what it builds sizes and ``rngs``, so what such a field is given has to be
explicit itself. All other fields are data and functions of arrays, the same in both forms.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.classes.fields.types import items_are_called
from nnx_migrate.rewrite.outside.field_reads import read_fields
from nnx_migrate.sizes import ClassSizes, Site, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import named_parameters
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

_BUILT = (SiteKind.FACTORY, SiteKind.FUNCTION)


def fields_of_modules(
    project: Project, sizes: Mapping[str, ClassSizes], open_fields: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """By class, the fields of it that may hold modules or what builds them.

    Args:
      open_fields: of each class its `open_fields`, which are none of them unless others are given these.
    """
    found = {
        name: frozenset(_own(project, project.linen[name], sizes[name])) - own
        for name, own in open_fields.items()
    }
    return _with_handed_on(project, sizes, found)


def open_fields(
    project: Project, sizes: Mapping[str, ClassSizes], names: Iterable[str]
) -> dict[str, frozenset[str]]:
    """By class, the fields that only build what is lazy, of classes that nobody knows: they take both forms of these.

    Those that a class hands on to such fields of others are among them: ``Block(norm=self.norm)``.
    """
    own = {name: _open_fields(project, project.linen[name], sizes[name]) for name in names}
    return _with_handed_on(project, sizes, own)


def _with_handed_on(
    project: Project, sizes: Mapping[str, ClassSizes], fields: dict[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    while True:
        wider = {
            name: fields[name] | frozenset(_handed_on(project, sizes[name], fields, name))
            for name in fields
        }
        if wider == fields:
            return fields
        fields = wider


def _open_fields(project: Project, cls: ClassInfo, sizes: ClassSizes) -> frozenset[str]:
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for site in sizes.sites.values():
        if site.kind in _BUILT or site.symbol is None:
            found[site.is_open] |= read_fields(project, cls, site.call.func)
    return frozenset(found[True] - found[False])


def _own(project: Project, cls: ClassInfo, sizes: ClassSizes) -> Iterator[str]:
    for one in cls.fields:
        expressions = [one.annotation, *([one.default] if one.default is not None else [])]
        is_module = any(
            _is_module(project, cls, part) for whole in expressions for part in walk(whole)
        )
        if is_module or items_are_called(project, cls, one):
            yield one.name
    for site in sizes.sites.values():
        if site.kind is SiteKind.FUNCTION:
            called = _called_parameters(project, site)
            for value in site.call.args if called else ():
                yield from read_fields(project, cls, value)
            for keyword in site.call.keywords:
                if keyword.arg is None or keyword.arg in called:
                    yield from read_fields(project, cls, keyword.value)
        elif site.kind in _BUILT or site.symbol is None:
            yield from read_fields(project, cls, site.call.func)


def _called_parameters(project: Project, site: Site) -> set[str]:
    """Parameters that a scope function calls or hands on to a call of a parameter."""
    owner, _, name = (site.symbol or "").rpartition(".")
    function: ast.AST | None = project.function(site.symbol)
    if function is None and owner in project.linen:
        found = project.linen[owner].find(name)
        function = found[1] if found is not None else None
    if not isinstance(function, ast.FunctionDef):
        return {keyword.arg or "" for keyword in site.call.keywords}
    spec = function.args
    names = {one.arg for one in named_parameters(spec)}
    calls = each(function, ast.Call)
    return names & {one.func.id for one in calls if isinstance(one.func, ast.Name)}


def _is_module(project: Project, cls: ClassInfo, node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return "Module" in node.value
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    symbol = project.resolve(node, cls.scope)
    if symbol is None:
        return False
    last = symbol.rpartition(".")[2]
    return symbol in project.linen or (is_linen(symbol) and last[:1].isupper()) or "Module" in last


def _handed_on(
    project: Project, sizes: ClassSizes, fields: Mapping[str, frozenset[str]], name: str
) -> Iterator[str]:
    """Fields that are passed to such fields of the classes that this one builds."""
    cls = project.linen[name]
    every = frozenset().union(*fields.values())
    for site in sizes.sites.values():
        if site.kind is SiteKind.FACTORY and not site.is_open:
            yield from read_fields(project, cls, site.call.func, every)
        built = project.linen.get(site.symbol or "")
        holding = fields.get(built.name, frozenset()) if built is not None else every
        if not holding or site.kind is SiteKind.LAYER:
            continue
        names = [one.name for one in built.fields if not one.keyword_only] if built else [""]
        names += [""] * (len(site.call.args) - len(names))  # given to what takes no such fields
        for index, value in enumerate(site.call.args):
            if names[index] in holding:
                yield from read_fields(project, cls, value, every)
        for one in site.call.keywords:
            if one.arg is None or one.arg in holding:
                yield from read_fields(project, cls, one.value, every)
