"""A module with the scope of one that it is given: ``nn.share_scope(self, self.inner)`` of a field.

Where the given module has no scope of its own yet it gets that of the module that shares it. One that a
compact method builds has one, and the other moves there: ``Adapter(nn.Dense(4))`` has its variables in
``Dense_0`` (flax 0.12.8, linen/module.py, ``share_scope``). Which of both it is, only the constructor
calls tell: each has to build the module in the call itself.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.naming import Name
from nnx_migrate.rewrite.classes.scopes.children import module_fields
from nnx_migrate.rewrite.classes.scopes.finding import adoption_of, refusal
from nnx_migrate.sizes.factories import factory_functions
from nnx_migrate.sizes.mentions import Mention, mentions_of
from nnx_migrate.sizes.result import SiteKind
from nnx_migrate.sizes.return_values import is_module_class
from nnx_migrate.sizes.scope_functions import scope_functions
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.parents import Parents
from nnx_migrate.source.project import Project

_PLACED = frozenset({"name", "parent"})


def check_adopted(project: Project, cls: ClassInfo, field: str, at: ast.Call) -> str:
    """Check every constructor call of ``cls``; the symbol of the layer that its ``field`` gets.

    Raises:
      Refused: one of them may give it a module whose scope is another's, or of another class.
    """
    declared = next(one for one in cls.fields if one.name == field)
    symbol = project.resolve(declared.annotation, declared.owner.scope) or ""
    if declared.default is not None or field in cls.reassigned:
        raise refusal(at, f"self.{field}, which shares the scope, has a value of its own")
    for mention in mentions_of(project, cls.name):
        given = _given(cls, field, mention.call)
        built = project.resolve(given.func, mention.scope) if given is not None else None
        if given is None or built != symbol or not _is_placed(project, mention, given):
            raise refusal(
                at,
                f"not every use of {cls.node.name} builds its {field} in a plain constructor call:"
                " which scope both share is not certain",
            )
    return symbol


def _given(cls: ClassInfo, field: str, call: ast.Call | None) -> ast.Call | None:
    """The construction of the module that a constructor call of ``cls`` gives ``field``."""
    if call is None or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    names = [one.name for one in cls.fields if not one.keyword_only]
    given = dict(zip(names, call.args, strict=False))
    keywords = {one.arg: one.value for one in call.keywords}
    value = (given | keywords).get(field)
    if None in keywords or "parent" in keywords or not isinstance(value, ast.Call):
        return None
    return None if any(one.arg in (*_PLACED, None) for one in value.keywords) else value


def _is_placed(project: Project, mention: Mention, given: ast.Call) -> bool:
    """Whether it is known what builds the module, and so which scope it and its parts have."""
    function, call = mention.function, mention.call
    child = project.linen.get(project.resolve(given.func, mention.scope) or "")
    holds = child is not None and bool(module_fields(project, child))
    if holds and not _is_new(project, mention, given):
        return False
    if mention.cls is None:  # nobody's submodule; functions that modules build with are not outside
        inside = {*factory_functions(project), *scope_functions(project)}
        return id(function) not in inside
    if function is None or call is None:
        return False
    if function is mention.cls.methods.get("setup"):
        above = Parents(function).of(call)
        match above:
            case ast.Assign(targets=[ast.Attribute()]):
                return True
        return False
    is_compact = project.is_compact(mention.cls, function)
    return function in mention.cls.methods.values() and is_compact and not holds


def _is_new(project: Project, mention: Mention, value: ast.expr) -> bool:
    """Whether a value is a constant, or a module built here, and all that it holds is, too."""
    match value:
        case ast.Constant():
            return True
        case ast.Call(func=function, args=args, keywords=keywords):
            symbol = project.resolve(function, mention.scope)
            given = [*args, *(one.value for one in keywords)]
            plain = not any(one.arg in (*_PLACED, None) for one in keywords)
            known = plain and is_module_class(project, symbol)
            return known and all(_is_new(project, mention, one) for one in given)
    return False


def with_adopted(
    project: Project, items: Mapping[int, Item], names: Mapping[int, Name]
) -> dict[int, Name]:
    """The names in a compact method, those of modules that move to their field's scope among them.

    Raises:
      Refused: the name of the module in the field is only known at run time.
    """
    found = dict(names)
    for key, item in items.items():
        site = item.site
        cls = project.linen.get(site.symbol or "") if site is not None else None
        if cls is None or site is None or site.kind is not SiteKind.CLASS:
            continue
        adoption = adoption_of(project, cls)
        if adoption is None:
            continue
        given = _given(cls, adoption.field, item.call)
        inner = items.get(id(given))
        if inner is None or inner.kind is not ItemKind.SITE or _is_open(item, inner, names):
            raise Refused(
                item.call,
                f"{cls.node.name} moves to the scope of its {adoption.field}, whose name is not known",
                "share the scope of a submodule that the class itself builds",
                "share-scope",
            )
        found[key] = found[id(given)]
    return found


def _is_open(item: Item, inner: Item, names: Mapping[int, Name]) -> bool:
    known = [names.get(id(one.call)) for one in (item, inner)]
    sites = [one.site for one in (item, inner)]
    return any(one is None or one.counted is not None for one in known) or any(
        one is None or one.reached is not None for one in sites
    )
