"""Fields of explicit classes that take lazy modules: ``lazy(Classifier)(lazy(Backbone)(16))``.

Scripts build the parts of a model and hand them in. There everything is lazy, so the explicit class has
a lazy submodule at the field's name, of which it must ask no more than calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.checks.lazy_uses import LazyUses, check_methods, more_than_called
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.reading.holders import Holders, methods_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

Field = tuple[str, str]  # class, field


@dataclass(frozen=True)
class HandedModules:
    """Which fields take lazy modules.

    Attributes:
      makers: fields from which a class builds submodules.
    """

    project: Project
    sizes: Mapping[str, ClassSizes]
    makers: Collection[Field]
    known: dict[Field, str | None] = field(default_factory=dict)

    def why_not(self, at: Field) -> str | None:
        """Why a field cannot take a lazy module; None if it can."""
        if at not in self.known:
            self.known[at] = self._why_not(self.project.linen[at[0]], at)
        return self.known[at]

    def _why_not(self, cls: ClassInfo, at: Field) -> str | None:
        if at in self.makers:
            return f"{cls.node.name} builds submodules from it"
        sizes = self.sizes[cls.name]
        handed, explicit = Holders(cls, (), {at[1]}), Holders(cls, ())
        modules = Holders(cls, sizes.sites.keys(), {one.name for one in cls.fields})
        classes = [*self.project.linen.values()]
        try:
            if any(one.fact is not None for one in sizes.new_arguments):
                raise more_than_called(cls.node, "its initial call decides which submodules it has")
            check_methods(self.project, cls)
            for method in methods_of(cls):
                LazyUses(
                    self.project, cls, method, handed, explicit, modules, classes, lambda _: True
                ).check()
        except Refused as refused:
            line = getattr(refused.refusal.node, "lineno", 0)
            return f"{refused.refusal.reason} (line {line})"
        return None
