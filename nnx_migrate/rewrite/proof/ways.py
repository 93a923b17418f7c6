"""Ways to a class that no name in the code shows, or only a name that may mean something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.outside.places import places_of
from nnx_migrate.rewrite.proof.accesses import EXAMPLE, SUBCLASSES, Access, accesses
from nnx_migrate.rewrite.proof.ambiguous_names import ambiguous_names
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.rewrite.proof.module_hooks import hooked_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.linen_modules import linen_modules
from nnx_migrate.source.project import Project
from nnx_migrate.source.takers import doubt_of, takers


@dataclass(frozen=True)
class Ways:
    """The ways to all classes of a project."""

    accesses: tuple[Access, ...]
    ambiguous: tuple[Access, ...]


@Fact  # every attempt of a run asks
def ways(project: Project) -> Ways:
    """Read the places of a project where code may get a class."""
    linked = linen_modules(project)
    by_place: list[Access] = []
    by_name: list[Access] = []
    for module in project.modules.values():
        is_example = project.runs_examples and EXAMPLE in module.text
        if module.name in linked or SUBCLASSES in module.text or is_example:
            places = places_of(module, frozenset())
            by_place += accesses(project, places)
            by_place += hooked_names(project, places)
            by_name += ambiguous_names(project, places) if module.name in linked else ()
    return Ways(tuple(by_place), tuple(by_name))


def ways_to(project: Project, cls: ClassInfo, attempt: Attempt) -> Iterator[Doubt]:
    """Places where code may get the class, but those where the attempt makes it lazy."""
    found = ways(project)
    for one in (*found.accesses, *found.ambiguous):
        handled = attempt.lazy.get(one.path, frozenset())
        if id(one.node) not in handled and one.may_be(cls, project):
            yield Doubt(one.path, one.line, one.reason)
    if by_name := [*takers(project, cls, attempt.lazy)]:
        taker, reason = doubt_of(by_name)
        yield Doubt(taker.path, taker.line, reason)
