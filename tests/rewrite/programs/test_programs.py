"""Random programs compute after the rewrite what they computed before."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, event, given, settings

from tests.rewrite.programs.comparing import Program, outcome
from tests.rewrite.programs.lifts import lift_programs
from tests.rewrite.programs.rng import rng_programs
from tests.rewrite.programs.state import state_programs

# More programs than a test run has time for: NNX_MIGRATE_PROGRAMS=2000 python -m pytest FILE
PROGRAMS = int(os.environ.get("NNX_MIGRATE_PROGRAMS", "12"))

random_programs = settings(
    max_examples=PROGRAMS,
    deadline=None,
    derandomize=PROGRAMS < 100,
    phases=(Phase.explicit, Phase.generate),  # shrinking takes minutes: every step compiles twice
    suppress_health_check=list(HealthCheck),
)


@random_programs
@given(state_programs())
def test_programs_with_state_compute_what_linen_does(program: Program) -> None:
    event(outcome(program))


@random_programs
@given(rng_programs())
def test_programs_that_draw_keys_compute_what_linen_does(program: Program) -> None:
    event(outcome(program))


@random_programs
@given(lift_programs())
def test_programs_with_lifts_compute_what_linen_does(program: Program) -> None:
    event(outcome(program))
