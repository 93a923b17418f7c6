"""Which process of a run decides about which files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from nnx_migrate.rewrite.links import links_of
from nnx_migrate.rewrite.outside.module_values import held_modules
from nnx_migrate.rewrite.proof.changed_layers import changed_layers
from nnx_migrate.rewrite.proof.fillers import uses_by_module
from nnx_migrate.rewrite.proof.graph import graph_of
from nnx_migrate.rewrite.proof.ways import ways
from nnx_migrate.rewrite.workers import Team
from nnx_migrate.source.changed_globals import changed_globals
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.project import Project, Scope

_LEAST = 8  # Linen classes per process: below that, copies cost more than they save

# What a class takes, as a fit over transformers 4.57.6 (451 classes): 65 ms, and 1.9 ms a line.
_LINES = 35  # of which a class takes the time whatever stands in it
_OF_LINE = 40  # tenths of a character, which is what the code around classes takes


# What is asked of the whole project, in rounds of parts that take about as long; the graph asks for the first.
_ROUNDS: tuple[tuple[tuple[Fact[Any], ...], ...], ...] = (
    ((uses_by_module, links_of), (changed_globals, ways)),
    ((graph_of, changed_layers), (held_modules,)),
)


def share(project: Project, jobs: int, team: Team) -> None:
    """Start the processes of a run, if they are of use; all know the facts of the project then.

    Raises:
      TeamError: one of them has ended.
    """
    owners = shares_of(project, jobs)
    if not owners:
        return
    modules = project.modules.values()
    nodes = (node for module in modules for node in module.nodes)
    team.start(owners, chain(nodes, modules, project.classes.values(), [project]))
    for parts in _ROUNDS:
        found = team.divide({part[0].name: partial(_read, part, project) for part in parts})
        for part in parts:
            for one, value in zip(part, found[part[0].name], strict=True):
                one.accept(project, value)


def _read(facts: tuple[Fact[Any], ...], project: Project) -> list[Any]:
    return [one(project) for one in facts]


def shares_of(project: Project, jobs: int) -> Mapping[str, int]:
    """Numbers of processes by path; files whose classes name each other's are one's.

    What is found of such classes hangs on where one begins, and most that a class asks is about those.
    """
    jobs = min(jobs, len(project.linen) // _LEAST)
    if jobs <= 1:
        return {}
    sizes: dict[str, int] = {one.path: len(one.text) // 10 for one in project.modules.values()}
    for cls in project.linen.values():
        lines = (cls.node.end_lineno or 0) - cls.node.lineno
        sizes[cls.module.path] += _OF_LINE * (lines + _LINES)
    groups: dict[str, list[str]] = {path: [path] for path in sizes}
    for path, other in _links(project):
        if groups[path] is not groups[other]:
            joined = [*groups[path], *groups[other]]
            groups.update(dict.fromkeys(joined, joined))
    every = {id(one): one for one in groups.values()}.values()
    loads = [0] * jobs
    owners: dict[str, int] = {}
    for weight, paths in sorted(
        ((sum(sizes[path] for path in one), sorted(one)) for one in every), reverse=True
    ):
        number = loads.index(min(loads))
        loads[number] += weight
        owners.update(dict.fromkeys(paths, number))
    return owners


def _links(project: Project) -> Iterator[tuple[str, str]]:
    """Paths of files with Linen classes, where one has names of classes in the other."""
    modules = {cls.module.name: cls.module for cls in project.linen.values()}.values()
    for name, cls in project.linen.items():
        for module in modules:
            uses = module.by_word.get(cls.node.name, ()) if module is not cls.module else ()
            if any(project.resolve(use, Scope(module)) == name for use in uses):
                yield module.path, cls.module.path
