"""Fields of explicit classes that take lazy modules: ``lazy(Classifier)(lazy(Backbone)(16))``.

Scripts build the parts of a model and hand them in. There everything is lazy, so the explicit class has
a lazy submodule at the field's name, of which it must ask no more than calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from nnx_migrate.rewrite.classes.checks.lazy_uses import LazyUses, beyond_calls, check_methods
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.reading.holders import Holders
from nnx_migrate.sizes.result import ClassSizes, SiteKind
from nnx_migrate.source.classes import ClassInfo, arguments_by_field
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import has_starred

Field = tuple[str, str]  # class, field


@dataclass(frozen=True)
class LazyModuleFields:
    """Which fields take lazy modules.

    Attributes:
      sizes: of the classes that are explicit.
      builder_sizes: the sizes that a class gives what it builds from a field, of fields from which it builds some.
      reasons: why fields cannot, as far as asked.
      onward: classes that a class hands on to what a field of it is given.
    """

    project: Project
    sizes: Mapping[str, ClassSizes]
    builder_sizes: Mapping[Field, frozenset[str]]
    reasons: dict[Field, str | None] = field(default_factory=dict)
    onward: dict[Field, set[str]] = field(default_factory=dict)

    def why_not(self, at: Field) -> str | None:
        """Why a field cannot take a lazy module; None if it can."""
        if at not in self.reasons:
            self.reasons[at] = "it is given to itself"  # what asks again meanwhile is a circle
            self.reasons[at] = self._why_not(self.project.linen[at[0]], at)
        return self.reasons[at]

    def _why_not(self, cls: ClassInfo, at: Field) -> str | None:
        if at in self.builder_sizes:
            return f"{cls.node.name} builds submodules from it"
        sizes = self.sizes[cls.name]
        holders = Holders(cls, (), {at[1]})
        modules = Holders(cls, sizes.sites.keys(), cls.field_names)
        classes = [*self.project.linen.values()]
        takes = partial(self._hands_on, at)
        try:
            if any(one.fact is not None for one in sizes.new_arguments):
                raise beyond_calls(cls.node, "its initial call decides which submodules it has")
            check_methods(self.project, cls)
            for method in cls.every_method:
                LazyUses(self.project, cls, method, holders, modules, classes, takes=takes).check()
        except ClassRefused as refused:
            line = getattr(refused.refusal.node, "lineno", 0)
            return f"{refused.refusal.reason} (line {line})"
        return None

    def takers(self, names: Iterable[str]) -> frozenset[str]:
        """The classes that call what some are given: these, those that they hand it on to, and the bases of all."""
        found, todo = set[str](), [*names]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                fields = [(name, one.name) for one in self.project.linen[name].fields]
                taking = [at for at in fields if self.why_not(at) is None]
                todo += (one for at in taking for one in self.onward.get(at, ()))
        classes = (base for name in found for base in self.project.linen[name].mro)
        return frozenset(one.name for one in classes if one.name in self.project.linen)

    def _hands_on(self, at: Field, call: ast.Call, value: ast.AST) -> bool:
        """Whether a call builds an explicit submodule by a field that takes lazy modules: ``Residual(self.body)``."""
        site = self.sizes[at[0]].sites.get(id(call))
        built = "" if site is None or site.kind is not SiteKind.CLASS else site.symbol or ""
        if built not in self.sizes or has_starred(call.args):
            return False
        field_values = arguments_by_field(self.project.linen[built], call.args, call.keywords)
        fields = [name for name, one in field_values if one is value]
        self.onward.setdefault(at, set()).add(built)
        return bool(fields) and all(name and self.why_not((built, name)) is None for name in fields)
