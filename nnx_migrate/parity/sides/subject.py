"""A side of a case that is ready to run: what both sides do alike with it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from nnx_migrate.parity.case import Arguments, ParityCase, replicate
from nnx_migrate.parity.evaluation.measure import Apply, Measurement, Variables, measure
from nnx_migrate.parity.evaluation.mode_runs import Run, measure_mode
from nnx_migrate.parity.evaluation.results import ModeRun, SideResult, Stack, SubmoduleOutput
from nnx_migrate.parity.evaluation.running import OPERATIONS
from nnx_migrate.parity.evaluation.sowing import note_sowing
from nnx_migrate.parity.sides import bisect
from nnx_migrate.parity.training.steps import TrainingResult
from nnx_migrate.parity.values import Arrays, ShapeDtype, random_value, shape_dtype


@dataclass(frozen=True)
class Start:
    """What a side starts from, by Linen's path.

    Attributes:
      values: those under a constant key, or if that failed, real ones; `init_values` are the former on the host.
      names: of the axes of variables that have any.
      duplicates: variables that got the same random values under real keys.
    """

    values: Variables
    init_values: Arrays
    names: dict[str, tuple[str | None, ...]]
    duplicates: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """A module under comparison.

    Attributes:
      apply_in: its call, in the case or in another mode of it.
      shapes: of its variables, by Linen's path.
      variables: the values that it runs on; both sides get the same.
      arguments: of the call, whose `arrays` lie on the `mesh`.
    """

    case: ParityCase
    apply_in: Callable[[ParityCase], Apply]
    start: Start
    shapes: Mapping[str, ShapeDtype]
    variables: Variables
    arguments: Arguments
    arrays: list[Any]
    mesh: Any

    def measure(self, apply: Apply, *, control: bool) -> tuple[Measurement, tuple[str, ...]]:
        """What its programs give, and ``collection/name`` of what a call would sow."""
        sown: set[str] = set()
        operands = (self.variables, self.arguments, self.arrays)
        with note_sowing(sown):
            found = measure(self.case, apply, *operands, control=control)
        return found, tuple(sorted(sown))

    def in_mode(self, *, control: bool) -> Run:
        """The function that runs another mode of the call."""
        return functools.partial(measure_mode, self.apply_in, self.variables, self.arrays, control)

    def submodules(
        self,
        recorder: AbstractContextManager[bisect.Record],
        modes: tuple[ModeRun, ...],
        errors: dict[str, str],
    ) -> tuple[tuple[SubmoduleOutput, ...], tuple[ModeRun, ...]]:
        """The outputs of all submodules, and the modes with theirs; what raises is entered in `errors`."""
        case, apply_in, variables, arrays = self.case, self.apply_in, self.variables, self.arrays
        with recorder as record:
            apply = apply_in(case)
            outputs = bisect.run(case, apply, variables, self.arguments, arrays, record, errors)
            return outputs, bisect.in_modes(case, apply_in, variables, arrays, record, modes)

    def result(
        self, stack: Stack, name: str, measurement: Measurement, training: TrainingResult
    ) -> SideResult:
        """What is known of either side when it has run."""
        return SideResult(
            stack,
            name,
            shapes=dict(self.shapes),
            names=self.start.names,
            init_values=self.start.init_values,
            duplicates=self.start.duplicates,
            first=measurement.first,
            second=measurement.second,
            others=measurement.others,
            programs={**measurement.programs, **training.programs},
            debug_programs={**measurement.debug_programs, **training.debug_programs},
            features={**measurement.features, **training.features},
            layouts=training.before,
            layouts_after=training.after,
            losses=training.losses,
            state=training.state,
            errors={**measurement.errors, **training.errors},
            skip_reasons={**measurement.skip_reasons, **training.skip_reasons},
            eager_reason="" if self.case.compiled else OPERATIONS,
        )


def subject_of(
    case: ParityCase,
    apply_in: Callable[[ParityCase], Apply],
    start: Start,
    arguments: Arguments,
    arrays: list[Any],
    mesh: Any,
) -> Subject:
    """A side whose variables have random values in place of their initial ones."""
    shapes = {path: shape_dtype(value) for path, value in start.values.items()}
    random_values = {
        p: random_value(p, shapes[p], one, case.seed) for p, one in start.values.items()
    }
    return Subject(
        case, apply_in, start, shapes, replicate(random_values, mesh), arguments, arrays, mesh
    )
