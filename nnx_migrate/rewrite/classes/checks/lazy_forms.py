"""What an explicit class builds by ``lazy(Block)``: explicit classes that have a lazy form.

::

    for width, skip in zip(self.widths, skips):
        x = Block(width)(jnp.concatenate([x, skip], -1))  # whose width only the call tells
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nnx_migrate.rewrite.classes.data import ClassRefused, ConversionContext
from nnx_migrate.rewrite.lazy_form import NoLazyForm, declarations
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project


def check_lazy_forms(
    project: Project,
    sizes: ClassSizes,
    context: ConversionContext,
    class_arguments: Iterable[tuple[ast.expr, str]],
) -> None:
    """Check that all that may be built by ``lazy(...)`` has a lazy form.

    Args:
      class_arguments: the names of classes that lazy submodules get as fields, and the classes.

    Raises:
      Refused: a class has none, or stands in a field and has sizes whose names do not say what they
        are: ``lazy(self.block)`` declares none.
    """
    for node, name in class_arguments:
        if name in context.explicit_classes:
            _check(node, project.linen[name], context, is_stated=False)
    for site in sizes.sites.values():
        is_stated = site.kind is SiteKind.CLASS
        for cls in _explicit_classes(project, site, context) if site.is_lazy else ():
            _check(site.call, cls, context, is_stated=is_stated)


def _check(place: ast.expr, cls: ClassInfo, context: ConversionContext, *, is_stated: bool) -> None:
    try:
        more = declarations(cls, context.new_arguments.get(cls.name, ()))
    except NoLazyForm as problem:
        raise _refusal(place, cls, str(problem)) from problem
    if more and not is_stated:
        raise _refusal(place, cls, f"the name of its size {min(more)} does not say what it is")


def _refusal(place: ast.expr, cls: ClassInfo, reason: str) -> ClassRefused:
    text = f"the first call tells the sizes of {cls.node.name}, which has no lazy form: {reason}"
    return ClassRefused(place, text, "give the size as a field", "sizes")


def _explicit_classes(
    project: Project, site: Site, context: ConversionContext
) -> Iterator[ClassInfo]:
    """The explicit classes that a constructor call may build, of a value all that fields may hold."""
    if site.kind is SiteKind.LAYER:
        return
    names = project.linen if site.symbol is None else (site.symbol,)
    for name in names:
        if name in project.linen and name in context.explicit_classes:
            own = context.sizes_of(name)
            if site.symbol is not None or (own is not None and own.exports_out_features):
                yield project.linen[name]
