"""Static size inference over a whole project: one analysis per Linen class.

A class that others construct is analysed before them, so that they know which sizes to pass on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from nnx_migrate.sizes.caller_ranks import caller_ranks
from nnx_migrate.sizes.evidence import ProjectEvidence
from nnx_migrate.sizes.extras import NO_EXTRAS, Extras
from nnx_migrate.sizes.inference import ClassAnalysis, finish
from nnx_migrate.sizes.interpreter import TooDeep
from nnx_migrate.sizes.ranks import Proofs, together
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.sizes.runs import Question, Runs
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

_STUDIES = 3  # of one class, each with what the ones before proved


def analyse(
    project: Project,
    names: Iterable[str] | None = None,
    evidence: ProjectEvidence | None = None,
    extras: Mapping[str, Extras] = MappingProxyType({}),
    memory: Memory | None = None,
) -> Mapping[str, ClassSizes]:
    """Sizes of Linen classes of the project by qualified name.

    Args:
        names: the classes to analyse (and those they build); None: all.
        evidence: recorded calls, for sizes that the code leaves open and to check the others.
        extras: what is decided of classes beside their code, by name; of others nothing is.
        memory: what earlier calls with this project and evidence found; what this one finds is added.
    """
    memory = Memory(project) if memory is None else memory
    analysis = ProjectAnalysis(project, evidence, extras, memory=memory)
    return analysis.run(project.linen if names is None else names)


@dataclass(frozen=True)
class _Result:
    """Sizes of a class, with all that they depend on beside the code.

    Attributes:
      extras: what is decided of the class.
      dependencies: the sizes of other classes that were asked for, by name.
    """

    sizes: ClassSizes
    extras: Extras
    dependencies: Mapping[str, ClassSizes]


class Memory:
    """What is known of a project's classes and scope functions, by name."""

    def __init__(self, project: Project) -> None:
        """Nothing yet."""
        self.runs = Runs(project)
        self.results: dict[str, list[_Result]] = {}


@dataclass
class ProjectAnalysis:
    """Analyses of one project, each made once, and taken from ``memory`` where that has it."""

    project: Project
    evidence: ProjectEvidence | None = None
    extras: Mapping[str, Extras] = field(default_factory=dict)
    memory: Memory = field(kw_only=True)
    results: dict[str, ClassSizes] = field(default_factory=dict)
    running: dict[str, dict[str, ClassSizes]] = field(default_factory=dict)  # and what they asked

    def run(self, names: Iterable[str]) -> Mapping[str, ClassSizes]:
        """Analyse the named classes."""
        for name in names:
            self.sizes_of(name)
        return self.results

    def sizes_of(self, name: str) -> ClassSizes:
        """Analyse one class or scope function, its submodules' classes first."""
        found = self.results.get(name) or self._find(name)
        if self.running:
            next(reversed(self.running.values()))[name] = found
        return found

    def _find(self, name: str) -> ClassSizes:
        function = self.memory.runs.by_symbol.get(name)
        info = self.project.linen[name] if function is None else function.cls
        if name in self.running:
            return ClassSizes(problems=((info.node, "the class constructs itself"),))
        self.running[name] = {}
        try:
            sizes = self._from_memory(name)
            if sizes is None:
                dependencies: dict[str, ClassSizes] = {}
                self.running[name] = dependencies
                sizes = self._analyse(info)
                result = _Result(sizes, self._extras(name), dependencies)
                self.memory.results.setdefault(name, []).append(result)
        finally:
            del self.running[name]
        self.results[name] = sizes
        return sizes

    def _from_memory(self, name: str) -> ClassSizes | None:
        """What is known of a class that gets the same, and whose submodules' classes have not changed."""
        for one in self.memory.results.get(name, ()):
            if one.extras == self._extras(name) and all(
                self.sizes_of(other) is sizes for other, sizes in one.dependencies.items()
            ):
                return one.sizes
        return None

    def _extras(self, name: str) -> Extras:
        return self.extras.get(name, NO_EXTRAS)

    def _analyse(self, info: ClassInfo) -> ClassSizes:
        try:
            analysis, sizes = self._run_to_fixpoint(info, names_entries=True)
            return (
                self._run_to_fixpoint(info, names_entries=False)[1]
                if analysis.unplaced_sizes
                else sizes
            )
        except TooDeep as problem:
            return ClassSizes(problems=((info.node, f"size inference gave up: {problem}"),))
        except RecursionError:
            reason = "size inference gave up: calls nest too deeply"
            return ClassSizes(problems=((info.node, reason),))
        except Exception as bug:  # ours: it must not take the other classes down with it
            if os.environ.get("NNX_MIGRATE_DEBUG") == "1":
                raise
            return ClassSizes(problems=((info.node, f"size inference failed: {bug!r}"),))

    def _run_to_fixpoint(
        self, info: ClassInfo, *, names_entries: bool
    ) -> tuple[ClassAnalysis, ClassSizes]:
        """Run until nothing new is proved about the ranks of arguments; what was proved, stays."""
        found = self._once(info, {}, names_entries=names_entries)
        for _ in range(_STUDIES - 1):
            ranks = found[0].interpreter.ranks
            if ranks.has_gains:
                found = self._once(info, ranks.together(), names_entries=names_entries)
        ranks = found[0].interpreter.ranks
        if ranks.lacks_ranks and found[1].new_arguments:
            known = ranks.together()
            more = together(known, caller_ranks(self.memory.runs, info))
            if more != known:
                found = self._once(info, more, names_entries=names_entries)
        return found

    def _once(
        self, info: ClassInfo, ranks: Proofs, *, names_entries: bool
    ) -> tuple[ClassAnalysis, ClassSizes]:
        """One run; ``names_entries`` gives unknown sizes at a loop's start an argument each."""
        extras = self._extras(info.name)
        known = replace(extras, shapes=frozenset())  # a run does not depend on these
        question = Question(known, frozenset(ranks.items()), names_entries)
        run = self.memory.runs.of(info, question)
        recorded = self.evidence.of(info) if self.evidence and info.function is None else None
        analysis = ClassAnalysis(
            run.interpreter,
            run.interpreter.root,
            run.output,
            self.sizes_of,
            info.name in self.memory.runs.exporting_classes,
            recorded,
            extras.shapes,
        )
        return analysis, finish(analysis)
