"""Variables that a class reads of an explicit submodule that holds lazy ones: past these, or inside of one.

::

    table = self.model.variables["params"]["decoder"]["embed"]["embedding"]

reads an attribute of explicit modules all the way if only ``decoder``'s other submodules are lazy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.rewrite.classes.data import ConversionContext
from nnx_migrate.rewrite.classes.items import is_attribute_name, receiver_of
from nnx_migrate.rewrite.classes.variables.submodule_names import LEAVES
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_name


def leads_past_lazy(
    project: Project,
    cls: ClassInfo,
    sizes: ClassSizes,
    context: ConversionContext,
    steps: tuple[str, ...],
) -> bool:
    """Whether a path of attributes from a module of the class ends in an explicit one without lazy ones.

    Args:
      steps: the attributes, without the variable's own name: ``("model", "decoder", "embed")``.
    """
    for step in steps:
        site = _site_at(cls, sizes, step)
        if site is None or site.symbol is None or context.is_lazy(site):
            return False
        if not context.is_lazy_inside(site):
            return True
        inner = context.sizes_of(site.symbol)
        if inner is None or site.symbol not in project.linen:
            return False
        cls, sizes = project.linen[site.symbol], inner
    return False


def path_above(node: ast.Attribute, above: Mapping[int, ast.AST]) -> tuple[str, ...]:
    """The attributes on the way to the variable that ``self.model.variables[...][...]`` reads; none where it
    may be a dict."""
    keys: list[str] = []
    outer = above[id(node)]
    while isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant):
        keys.append(str(outer.slice.value))
        outer = above[id(outer)]
    are_attributes = len(keys) > 1 and all(map(is_attribute_name, keys)) and keys[-1] in LEAVES
    if not are_attributes or not isinstance(node.value, ast.Attribute):
        return ()
    return (node.value.attr, *keys[1:-1])


def _site_at(cls: ClassInfo, sizes: ClassSizes, name: str) -> Site | None:
    """What builds the submodule that an attribute holds, where one call alone says so."""
    calls = [*_values(cls, name)]
    site = sizes.sites.get(id(calls[0])) if len(calls) == 1 else None
    if site is None or site.kind not in (SiteKind.LAYER, SiteKind.CLASS):
        return None
    return None if any(one.arg == "name" for one in site.call.keywords) else site


def _values(cls: ClassInfo, name: str) -> Iterator[ast.AST]:
    """What the methods of a class give an attribute; what is no plain assignment among it."""
    for method in cls.every_method:
        values = {
            id(target): statement.value
            for statement in each(method, ast.Assign)
            for target in statement.targets
        }
        for node in each(method, ast.Attribute):
            is_own = is_name(node.value, receiver_of(method))
            if is_own and node.attr == name and isinstance(node.ctx, ast.Store):
                yield values.get(id(node), node)
