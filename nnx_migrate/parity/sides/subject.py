"""A side of a case that is ready to run: what both sides do alike with it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from nnx_migrate.parity.case import Arguments, ParityCase, replicate
from nnx_migrate.parity.evaluation.measure import Apply, Measured, Variables, measure
from nnx_migrate.parity.evaluation.mode_runs import Run, measure_mode
from nnx_migrate.parity.evaluation.results import ModeRun, SideResult, Stack, SubmoduleOutput
from nnx_migrate.parity.evaluation.running import OPERATIONS
from nnx_migrate.parity.evaluation.sowing import noted_sowing
from nnx_migrate.parity.sides import bisect
from nnx_migrate.parity.training.steps import Trained
from nnx_migrate.parity.values import Arrays, ShapeDtype, random_value, shape_dtype


@dataclass(frozen=True)
class Start:
    """What a side starts from, by Linen's path.

    Attributes:
      values: those under a constant key, or if that failed, real ones; `init_values` are the former on the host.
      names: of the axes of variables that have any.
      repeated: variables that got the same random values under real keys.
    """

    values: Variables
    init_values: Arrays
    names: dict[str, tuple[str | None, ...]]
    repeated: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """A module under comparison.

    Attributes:
      applied: its call, in the case or in another mode of it.
      shapes: of its variables, by Linen's path.
      variables: the values that it runs on; both sides get the same.
      arguments: of the call, whose `arrays` lie on the `mesh`.
    """

    case: ParityCase
    applied: Callable[[ParityCase], Apply]
    start: Start
    shapes: Mapping[str, ShapeDtype]
    variables: Variables
    arguments: Arguments
    arrays: list[Any]
    mesh: Any

    def measured(self, apply: Apply, *, control: bool) -> tuple[Measured, tuple[str, ...]]:
        """What its programs give, and ``collection/name`` of what a call would sow."""
        sown: set[str] = set()
        operands = (self.variables, self.arguments, self.arrays)
        with noted_sowing(sown):
            found = measure(self.case, apply, *operands, control=control)
        return found, tuple(sorted(sown))

    def in_mode(self, *, control: bool) -> Run:
        """The function that runs another mode of the call."""
        return functools.partial(measure_mode, self.applied, self.variables, self.arrays, control)

    def submodules(
        self,
        recorded: AbstractContextManager[bisect.Record],
        modes: tuple[ModeRun, ...],
        errors: dict[str, str],
    ) -> tuple[tuple[SubmoduleOutput, ...], tuple[ModeRun, ...]]:
        """The outputs of all submodules, and the modes with theirs; what raises is entered in `errors`."""
        case, applied, variables, arrays = self.case, self.applied, self.variables, self.arrays
        with recorded as record:
            apply = applied(case)
            outputs = bisect.run(case, apply, variables, self.arguments, arrays, record, errors)
            return outputs, bisect.in_modes(case, applied, variables, arrays, record, modes)

    def result(self, stack: Stack, name: str, measured: Measured, trained: Trained) -> SideResult:
        """What is known of either side when it has run."""
        return SideResult(
            stack,
            name,
            shapes=dict(self.shapes),
            names=self.start.names,
            init_values=self.start.init_values,
            repeated=self.start.repeated,
            first=measured.first,
            second=measured.second,
            others=measured.others,
            programs={**measured.programs, **trained.programs},
            located={**measured.located, **trained.located},
            unseen={**measured.unseen, **trained.unseen},
            layouts=trained.before,
            layouts_after=trained.after,
            losses=trained.losses,
            state=trained.state,
            errors={**measured.errors, **trained.errors},
            skipped={**measured.skipped, **trained.skipped},
            untraced="" if self.case.compiled else OPERATIONS,
        )


def subject_of(
    case: ParityCase,
    applied: Callable[[ParityCase], Apply],
    start: Start,
    arguments: Arguments,
    arrays: list[Any],
    mesh: Any,
) -> Subject:
    """A side whose variables have random values in place of their initial ones."""
    shapes = {path: shape_dtype(value) for path, value in start.values.items()}
    drawn = {p: random_value(p, shapes[p], one, case.seed) for p, one in start.values.items()}
    return Subject(case, applied, start, shapes, replicate(drawn, mesh), arguments, arrays, mesh)
