"""Which parameters of a class Linen makes before those of a submodule in the same scope."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.scopes.finding import Sharing, refusal
from nnx_migrate.rewrite.classes.scopes.uses import is_straight, uses
from nnx_migrate.sizes.result import SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.parents import Parents
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk


def made_before(
    project: Project,
    cls: ClassInfo,
    items: Mapping[int, Item],
    compact: ast.FunctionDef | None,
    sharing: Sharing,
) -> tuple[str, ...]:
    """Names of the parameters of the class that Linen makes before those of the submodule."""
    own = [one for one in items.values() if one.kind is not ItemKind.SITE]
    kinds = {one.kind for one in own}
    if {ItemKind.VARIABLE, ItemKind.STREAM} <= kinds:
        raise refusal(sharing.call, "a submodule shares the scope of a class that draws keys")
    names = {id(one.call): _name_of(one) for one in own if one.kind is not ItemKind.STREAM}
    setup = cls.methods.get("setup")
    in_setup = [*walk(setup)] if setup is not None else []
    in_call = [one for one in walk(compact) if id(one) in names] if compact is not None else []
    before = [names[id(one)] for one in in_setup if id(one) in names]
    if not in_call:
        return tuple(before)
    called = _first_call(project, cls, items, compact, sharing)
    end = (called.end_lineno or 0, called.end_col_offset or 0)
    places = sorted((one.lineno, one.col_offset, names[id(one)]) for one in in_call)  # type: ignore[attr-defined]
    return (*before, *(name for line, column, name in places if (line, column) < end))


def _name_of(item: Item) -> str:
    if isinstance(item.name, ast.Constant) and isinstance(item.name.value, str):
        return item.name.value
    raise refusal(
        item.call, "a submodule shares the scope of a class with a computed variable name"
    )


def _is_layer(
    project: Project, cls: ClassInfo, items: Mapping[int, Item], sharing: Sharing
) -> bool:
    """Whether an attribute of the submodule is a field, and none that runs the submodule."""
    if sharing.field is None:
        site = items[id(sharing.call)].site
        return site is not None and site.kind is SiteKind.LAYER
    field = next(one for one in cls.fields if one.name == sharing.field)
    return project.resolve(field.annotation, field.owner.scope) not in project.linen


def _first_call(
    project: Project,
    cls: ClassInfo,
    items: Mapping[int, Item],
    compact: ast.FunctionDef | None,
    sharing: Sharing,
) -> ast.Call:
    """The call that makes the variables of the submodule.

    Raises:
      Refused: it may be another.
    """
    uncertain = refusal(
        sharing.call,
        "whether the parameters of the class come before those of the submodule that"
        " shares its scope is not certain",
    )
    parents = Parents(sharing.method)
    if sharing.holder is None:
        found = parents.called_by(sharing.call)
        assert found is not None
        return found
    is_layer = _is_layer(project, cls, items, sharing)
    for use, method in uses(cls, sharing):
        parents = Parents(method)
        call = parents.owner_of(use)
        if is_layer and isinstance(call, ast.Attribute):
            continue  # a field of the layer
        if not isinstance(call, ast.Call) or method is not compact:
            raise uncertain
        if not is_straight(parents, call):
            raise uncertain
        return call
    raise uncertain
