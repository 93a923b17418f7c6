"""Ways to a class that no name in the code shows, or only a name that may mean something else."""

from __future__ import annotations

from collections.abc import Iterator

from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.proof.accesses import accesses
from nnx_migrate.rewrite.proof.ambiguous import ambiguous_names
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.rewrite.proof.dynamic_imports import takers
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project


def ways_to(project: Project, cls: ClassInfo, attempt: Attempt) -> Iterator[Doubt]:
    """Places where code may get the class, but those where the attempt makes it lazy."""
    for one in (*accesses(project), *ambiguous_names(project)):
        handled = attempt.lazy.get(one.path, frozenset())
        if id(one.node) not in handled and one.may_be(cls, project):
            yield Doubt(one.path, one.line, one.reason)
    for taker in takers(project, cls):
        yield Doubt(taker.path, taker.line, taker.reason)
