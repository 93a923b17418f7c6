"""Real bugs of a migration by hand, by id; where each is shown that no mutant of a built-in model is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks.mutants.mutant import Mutant

# fmt: off
HAZARDS = (
    "B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B10", "B11", "B12", "B13", "B14",
    "B15", "B16", "B17", "B19", "B20", "B21", "B22", "B23", "B25", "B26", "B27", "B28", "B29",
    "B30", "B31", "B32", "B34", "B35", "B36", "B37", "B38", "B39", "B40", "B41", "B42", "B44",
    "B45", "B46", "B48", "B49", "B51", "B52", "B53", "B54", "B55", "B57", "B59", "B60", "B61",
    "B62", "B63", "B65", "B66",
)
# fmt: on

_RAISES = "tests/parity/test_check.py::test_a_defect_fails_its_checks"
# The test that shows it, on models of its own.
ELSEWHERE: Mapping[str, str] = {
    "B05": _RAISES,
    "B08": _RAISES,
    "B14": _RAISES,
    "B26": "tests/parity/test_decoding.py::test_a_stack_whose_caches_are_lost_fails_at_the_layers",
    "B32": "tests/linen/layers/test_fp8_ops.py::test_gradients_of_scales_are_their_new_values",
    "B34": _RAISES,
    "B38": _RAISES,
}
_CHECKPOINT = "of files that are written and read again, which no comparison of two variants does"
# Why two variants that run side by side cannot show it.
BEYOND: Mapping[str, str] = {
    "B07": _CHECKPOINT,
    "B31": "of an adapter that calls one variant only",
    "B40": "of how parameters are loaded, not of what they are",
    "B49": "of a quantisation that neither variant has",
    **dict.fromkeys(("B59", "B60", "B61", "B62", "B63", "B65"), _CHECKPOINT),
}


def unplaced(mutants: Iterable[Mutant]) -> list[str]:
    """Hazards that no mutant is, no test is said to show, and nothing is said of."""
    known = {one for mutant in mutants for one in mutant.hazards.split()}
    return [one for one in HAZARDS if one not in {*known, *ELSEWHERE, *BEYOND}]
