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
from nnx_migrate.parity.values import ShapeDtype, random_value, shape_dtype


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
    values: Mapping[str, Any],
    arguments: Arguments,
    arrays: list[Any],
    mesh: Any,
) -> Subject:
    """A side whose variables have random values in place of their initial `values`, by path."""
    shapes = {path: shape_dtype(value) for path, value in values.items()}
    drawn = {path: random_value(path, shapes[path], values[path], case.seed) for path in values}
    return Subject(case, applied, shapes, replicate(drawn, mesh), arguments, arrays, mesh)
