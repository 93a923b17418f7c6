"""The sizes that explicit classes give to what they build from a field.

A layer or class for such a field has to do with them: ``nnm.ConvLocal`` asks for the whole shape of
its input, where a class that builds ``nn.Conv`` by default gives ``in_features``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nnx_migrate.rewrite.outside.holding import read_fields
from nnx_migrate.sizes import ClassSizes, SiteKind
from nnx_migrate.source.classes import arguments_by_field
from nnx_migrate.source.project import Project

Field = tuple[str, str]  # class, field
_Given = frozenset[str] | None  # None: nothing is built from it


def passed_sizes(
    project: Project, sizes: Mapping[str, ClassSizes], names: Iterable[str]
) -> dict[Field, frozenset[str]]:
    """The size arguments that everything built from a field is given, by class and field."""
    passed: dict[Field, _Given] = {
        (name, one.name): None for name in names for one in project.linen[name].fields
    }
    links = [*_links(project, sizes, passed)]
    while True:
        before = dict(passed)
        for at, given in links:
            found = given if isinstance(given, frozenset) else passed.get(given)
            old = passed[at]
            if found is not None:
                passed[at] = found if old is None else old & found
        if passed == before:
            return {at: found for at, found in passed.items() if found is not None}


def _links(
    project: Project, sizes: Mapping[str, ClassSizes], fields: Iterable[Field]
) -> Iterator[tuple[Field, frozenset[str] | Field]]:
    """Fields with the sizes given to what is built from them, or with the field they are given to."""
    for name in sorted({name for name, _ in fields}):
        cls = project.linen[name]
        for site in sizes[name].sites.values():
            if site.kind is not SiteKind.LAYER and site.symbol not in project.linen:
                for field in read_fields(project, cls, site.call.func):
                    yield (name, field), frozenset(site.sizes)
            built = project.linen.get(site.symbol or "")
            if built is None:
                continue
            for other, value in arguments_by_field(built, site.call.args, site.call.keywords):
                for field in read_fields(project, cls, value) if other else ():
                    yield (name, field), (built.name, other)
