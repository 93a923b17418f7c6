"""Fields of explicit classes that take lazy modules: ``lazy(Classifier)(lazy(Backbone)(16))``.

Scripts build the parts of a model and hand them in. There everything is lazy, so the explicit class has
a lazy submodule at the field's name, of which it must ask no more than calls.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.checks.lazy_uses import LazyUses, check_methods, more_than_called
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.reading.holders import Holders, methods_of
from nnx_migrate.sizes.result import ClassSizes, SiteKind
from nnx_migrate.source.classes import ClassInfo, arguments_by_field
from nnx_migrate.source.project import Project

Field = tuple[str, str]  # class, field


@dataclass(frozen=True)
class HandedModules:
    """Which fields take lazy modules.

    Attributes:
      sizes: of the classes that are explicit.
      makers: fields from which a class builds submodules.
    """

    project: Project
    sizes: Mapping[str, ClassSizes]
    makers: Collection[Field]
    known: dict[Field, str | None] = field(default_factory=dict)

    def why_not(self, at: Field) -> str | None:
        """Why a field cannot take a lazy module; None if it can."""
        if at not in self.known:
            self.known[at] = "it is given to itself"  # what asks again meanwhile is a circle
            self.known[at] = self._why_not(self.project.linen[at[0]], at)
        return self.known[at]

    def _why_not(self, cls: ClassInfo, at: Field) -> str | None:
        if at in self.makers:
            return f"{cls.node.name} builds submodules from it"
        sizes = self.sizes[cls.name]
        handed, explicit = Holders(cls, (), {at[1]}), Holders(cls, ())
        modules = Holders(cls, sizes.sites.keys(), {one.name for one in cls.fields})
        classes = [*self.project.linen.values()]

        def takes(call: ast.Call, value: ast.AST) -> bool:
            return self._hands_on(sizes, call, value)

        try:
            if any(one.fact is not None for one in sizes.new_arguments):
                raise more_than_called(cls.node, "its initial call decides which submodules it has")
            check_methods(self.project, cls)
            for method in methods_of(cls):
                LazyUses(
                    self.project, cls, method, handed, explicit, modules, classes, _anywhere, takes
                ).check()
        except Refused as refused:
            line = getattr(refused.refusal.node, "lineno", 0)
            return f"{refused.refusal.reason} (line {line})"
        return None

    def _hands_on(self, sizes: ClassSizes, call: ast.Call, value: ast.AST) -> bool:
        """Whether a call builds an explicit submodule by a field that takes lazy modules: ``Residual(self.body)``."""
        site = sizes.sites.get(id(call))
        built = "" if site is None or site.kind is not SiteKind.CLASS else site.symbol or ""
        if built not in self.sizes or any(isinstance(one, ast.Starred) for one in call.args):
            return False
        given = arguments_by_field(self.project.linen[built], call.args, call.keywords)
        fields = [name for name, one in given if one is value]
        return bool(fields) and all(name and self.why_not((built, name)) is None for name in fields)


def _anywhere(steps: tuple[str, ...]) -> bool:
    return True
