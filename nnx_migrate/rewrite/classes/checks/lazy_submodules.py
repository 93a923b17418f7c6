"""Submodules that stay lazy inside of an explicit class: where these are no more than called.

::

    def setup(self):
        self.encoder = Encoder(self.width)  # lazy: built by its first call, in Linen's scope of that path

What such a submodule is given has to be the same in both forms: numbers, functions of arrays, no modules.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from nnx_migrate.constructs import layer_of
from nnx_migrate.rewrite.class_values import class_values
from nnx_migrate.rewrite.classes.checks.lazy_arguments import LazyArguments
from nnx_migrate.rewrite.classes.checks.lazy_uses import (
    LazyUses,
    beyond_calls,
    check_methods,
)
from nnx_migrate.rewrite.classes.checks.variable_paths import leads_past_lazy
from nnx_migrate.rewrite.classes.data import ConversionContext
from nnx_migrate.rewrite.classes.items import Item, submodule_keys
from nnx_migrate.rewrite.classes.reading.holders import Holders
from nnx_migrate.rewrite.links import links_of
from nnx_migrate.sizes.factories import built_classes, factory_functions
from nnx_migrate.sizes.result import ClassSizes, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import names_in_text
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk


def check_lazy_submodules(
    project: Project,
    cls: ClassInfo,
    items: Mapping[int, Item],
    sizes: ClassSizes,
    context: ConversionContext,
    class_names: Collection[int],
    delegates: bool,
) -> bool:
    """Whether a class holds lazy submodules, itself or in its explicit ones.

    Args:
      class_names: ids of the names of classes that lazy submodules get as fields.
      delegates: whether it takes over what its bases build.

    Raises:
      Refused: it does more with one than to call it.
    """
    inherited = _inside_bases(project, cls, context) if delegates else frozenset()
    found = _Submodules(project, cls, items, sizes, context, inherited)
    for name in sorted(_held_classes(project, cls, sizes)):
        if context.holds_lazy(name) and name not in context.lifted_classes:
            raise beyond_calls(cls.node, f"it has {name}, which holds lazy submodules, as a value")
    partials = [*_lazy_partials(project, cls, sizes, context, class_names)]
    if not found.inside and not inherited:
        return False
    if _is_told(cls, sizes, found.inside | inherited):
        reason = (
            "what the initial call is given decides which submodules there are, and some are lazy"
        )
        raise beyond_calls(cls.node, reason)
    found.check_constructors()
    found.check_arguments(class_names, partials)
    check_methods(project, cls)
    found.check_uses()
    return True


@dataclass(frozen=True)
class _Submodules:
    """The submodules of one class, by the ids of the calls that build them.

    Attributes:
      base_calls: those that are lazy, or hold such, and that its bases build.
    """

    project: Project
    cls: ClassInfo
    items: Mapping[int, Item]
    sizes: ClassSizes
    context: ConversionContext
    base_calls: frozenset[int]

    @cached_property
    def lazy(self) -> frozenset[int]:
        """Those that are lazy."""
        sites = self.sizes.sites.items()
        return frozenset(key for key, one in sites if self.context.is_lazy(one))

    @cached_property
    def inside(self) -> frozenset[int]:
        """Those that are lazy, or hold such."""
        sites = self.sizes.sites.items()
        return frozenset(key for key, one in sites if self.context.is_lazy_inside(one))

    @cached_property
    def _modules(self) -> Holders:
        """All of them, but for those that are in scope: a call of such gives an array."""
        keys = (key for key in submodule_keys(self.items) if not self.items[key].is_in_scope)
        return Holders(self.cls, frozenset(keys))

    def _in_order(self, keys: frozenset[int]) -> list[int]:
        """Those that the class itself builds, as they stand in it: the first that is refused is named."""
        own = (key for key in self.sizes.sites if key in keys - self.base_calls)
        calls = {key: self.sizes.sites[key].call for key in own}
        return sorted(calls, key=lambda key: (calls[key].lineno, calls[key].col_offset))

    def check_constructors(self) -> None:
        """Refuse what else than a call of its class may build one, and classes that look around them.

        Raises:
          Refused: the class of one is not what its name says, or builds itself.
        """
        for key in self._in_order(self.inside):
            site = self.sizes.sites[key]
            known = site.kind is SiteKind.CLASS or key in self.lazy
            if key not in self.items or not known or site.out_variable is not None:
                raise beyond_calls(
                    site.call, f"{site.symbol} is lazy, and is built by more than a call of it"
                )
            built = built_classes(self.project, site.symbol)
            if self.cls in built:
                raise beyond_calls(site.call, "it builds itself, and holds lazy submodules")
            for one in built if site.symbol in self.context.lazy else ():
                _check_class(one, site.call)

    def check_arguments(self, class_names: Collection[int], partials: Iterable[ast.Call]) -> None:
        """Refuse to build one, or a partial of one, with what is not the same in both forms.

        Raises:
          Refused: it is given a module.
        """
        arguments = LazyArguments(self.project, self.cls, self.items, self._modules, class_names)
        for key in self._in_order(self.lazy):
            is_explicit = self.context.is_lazy_form(self.sizes.sites[key])
            replace(arguments, takes_classes=is_explicit).check(self.items[key].call)
        for call in partials:
            arguments.check_partial(call)

    def check_uses(self) -> None:
        """Refuse methods that do more with one than to call it.

        Raises:
          Refused: one does.
        """
        every = Holders(self.cls, self.inside | self.base_calls)
        builds = links_of(self.project).builds
        names = {name for owner in self.cls.mro for name in builds.get(owner.name, ())}
        built = [self.project.linen[one] for one in sorted(names)]
        for method in self.cls.every_method:
            LazyUses(
                self.project,
                self.cls,
                method,
                every,
                self._modules,
                built,
                self._may_read,
                self._takes,
            ).check()

    @cached_property
    def _explicit(self) -> Holders:
        """Those that are explicit and hold lazy ones."""
        return Holders(self.cls, self.inside - self.lazy)

    @cached_property
    def _of_either_form(self) -> Holders:
        """Those of a class that nobody knows."""
        keys = (key for key in self.inside if self.sizes.sites[key].is_open)
        return Holders(self.cls, frozenset(keys))

    def _may_read(self, node: ast.AST, method: ast.FunctionDef, steps: tuple[str, ...]) -> bool:
        if self._of_either_form.has(node, method):
            return False  # what it has is that of the one form or the other
        is_lazy_itself = not self._explicit.has(node, method)
        return is_lazy_itself or leads_past_lazy(
            self.project, self.cls, self.sizes, self.context, steps
        )

    def _takes(self, call: ast.Call, _: ast.AST) -> bool:
        site = self.sizes.sites.get(id(call))
        layer = layer_of(site.symbol) if site is not None else None
        return layer is not None and layer.only_calls


def _inside_bases(project: Project, cls: ClassInfo, context: ConversionContext) -> frozenset[int]:
    """The calls of the bases' methods that build submodules that are lazy, or hold such."""
    bases = [one.name for one in cls.mro[1:] if one.name in project.linen]
    sizes = [context.sizes_of(one) for one in bases if context.holds_lazy(one)]
    sites = [item for one in sizes if one is not None for item in one.sites.items()]
    return frozenset(key for key, one in sites if context.is_lazy_inside(one))


def _is_told(cls: ClassInfo, sizes: ClassSizes, inside: AbstractSet[int]) -> bool:
    """Whether facts of the initial call decide about lazy modules, whose variables do not show them."""
    facts = {one.name for one in sizes.new_arguments if one.fact is not None}
    reached = (sizes.sites[key].condition or "" for key in inside & sizes.sites.keys())
    if any(facts & names_in_text(text) for text in reached if text):
        return True
    tests = [
        one
        for method in cls.every_method
        for one in each(method, ast.If | ast.IfExp | ast.BoolOp)
        if any(id(node) in sizes.facts for node in walk(getattr(one, "test", one)))
    ]
    return any(_ends(one) or any(id(node) in inside for node in walk(one)) for one in tests)


def _ends(test: ast.AST) -> bool:
    """Whether what follows a test hangs on it, too."""
    return any(isinstance(one, ast.Return | ast.Continue | ast.Break) for one in walk(test))


def _held_classes(project: Project, cls: ClassInfo, sizes: ClassSizes) -> set[str]:
    """Classes that a class has as values, also those that factory functions give it sizes for."""
    keys = {key for key, one in sizes.sites.items() if one.kind is SiteKind.FACTORY}
    functions = factory_functions(project).values() if keys else ()
    used = (one for one in functions if not keys.isdisjoint(one.uses))
    return {
        *links_of(project).holds.get(cls.name, ()),
        *(name for one in used for _, name in one.calls),
    }


def _check_class(cls: ClassInfo, call: ast.Call) -> None:
    """Refuse lazy classes that are not what their name says, or that look at the module around them.

    Raises:
      Refused: a decorator may give another class, which Linen names otherwise, or it reads its parent.
    """
    decorated = any(one.node.decorator_list for one in cls.mro)
    if decorated or any(
        one.attr == "parent" for owner in cls.mro for one in each(owner.node, ast.Attribute)
    ):
        what = "is decorated" if decorated else "reads its parent"
        raise beyond_calls(call, f"{cls.node.name} is lazy, and {what}")


def _lazy_partials(
    project: Project,
    cls: ClassInfo,
    sizes: ClassSizes,
    context: ConversionContext,
    class_names: Collection[int],
) -> Iterator[ast.Call]:
    """The partials of lazy classes.

    Raises:
      Refused: a lazy class goes elsewhere as a value, or a call of it may build something else.
    """
    for node, symbol, value in class_values(project, cls):
        if not context.is_lazy_value(symbol) or id(node) in class_names:
            continue
        calls = value.calls if value is not None else ()
        sites = [sizes.sites.get(id(call)) for call in calls]
        if value is None or any(one is None or not context.is_lazy(one) for one in sites):
            raise beyond_calls(cls.node, f"it has {symbol}, which is lazy, as a value")
        yield from value.partials
