"""``self.policy.copy(name="anchor")``: a second module like the one that a field holds.

The class that builds ``self.policy`` is not known here, so its copy is built with the arguments that
it remembers (``nnm.copy_of``). flax 0.12.8, linen/module.py (``Module.copy``).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.classes.scopes.uses import is_straight, leaves_before
from nnx_migrate.sizes.result import Site, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.parents import Parents
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

_MODULE = "flax.linen.Module"
COPY_NOTE = (
    "the copy is built with what the module was built with, which only classes that are rewritten"
    " with this one remember (nnm.remember)"
)


@dataclass(frozen=True)
class Copy:
    """One copy: its call, and the symbol of the class that the field is declared to hold."""

    call: ast.Call
    declared: str


def copies_of(project: Project, cls: ClassInfo) -> Iterator[Copy]:
    """Copies of fields that ``setup`` or a compact method of ``cls`` makes, once and under one name."""
    held = _held(project, cls)
    main = cls.methods.get("__call__")
    methods = [one for one in (cls.methods.get("setup"), main) if one is not None and held]
    for method in methods:
        in_setup = method.name == "setup"
        if main is None or not (in_setup or project.is_compact(cls, method)):
            continue
        parents, receiver = Parents(method), receiver_of(method)
        for node in walk(method):
            match node:
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.Attribute(value=ast.Name(id=name), attr=field), attr="copy"
                    ),
                    args=[],
                    keywords=keywords,
                ) if name == receiver and field in held:
                    named = _is_named(keywords, in_setup, parents, node)
                    if named and is_straight(parents, node) and _is_called(main, node, parents):
                        yield Copy(node, held[field])


def sites_of(copies: Collection[Copy]) -> Mapping[int, Site]:
    """The copies as submodules that the class builds."""
    return {id(one.call): Site(one.call, SiteKind.COPY, None) for one in copies}


def copied_classes(project: Project) -> frozenset[str]:
    """Names of the classes of which some class of the project may copy a module."""
    found: set[str] = set()
    for cls in project.linen.values():
        for one in copies_of(project, cls):
            if one.declared == _MODULE:
                return frozenset(project.linen)
            found |= {k for k, v in project.linen.items() if project.linen[one.declared] in v.mro}
    return frozenset(found)


def _held(project: Project, cls: ClassInfo) -> dict[str, str]:
    """Fields that are declared to hold a module of the project, and its class."""
    found: dict[str, str] = {}
    for one in cls.fields:
        symbol = project.resolve(one.annotation, one.owner.scope)
        known = project.linen.get(symbol or "")
        own = known is not None and known.find("copy") is not None
        if symbol is not None and not own and (known is not None or symbol == _MODULE):
            found[one.name] = symbol
    return {name: symbol for name, symbol in found.items() if name not in cls.reassigned}


def _is_named(
    keywords: list[ast.keyword], in_setup: bool, parents: Parents, call: ast.Call
) -> bool:
    """Whether the copy has a name that is written out, in ``setup`` that of its attribute."""
    match keywords:
        case [ast.keyword(arg="name", value=ast.Constant(value=str()))]:
            return True
        case []:
            above = parents.of(call)
            return (
                in_setup
                and isinstance(above, ast.Assign)
                and [type(one) for one in above.targets] == [ast.Attribute]
            )
    return False


def _is_called(main: ast.FunctionDef, call: ast.Call, parents: Parents) -> bool:
    """Whether every call of the class calls the copy: Linen makes its variables then."""
    if parents.called_by(call) is not None:
        return not leaves_before(main, call)
    match parents.of(call):
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
            holder = ast.unparse(target)
        case _:
            return False
    stores = [
        one
        for one in walk(main)
        if isinstance(one, ast.Name | ast.Attribute)
        and not isinstance(one.ctx, ast.Load)
        and ast.unparse(one) == holder
    ]
    inside = Parents(main)
    return len(stores) == isinstance(target, ast.Name) and any(
        isinstance(one, ast.Call)
        and ast.unparse(one.func) == holder
        and is_straight(inside, one)
        and not leaves_before(main, one)
        for one in walk(main)
    )
