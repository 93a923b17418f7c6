"""What the committed kill table says of places: a person is told where the fault is."""

from __future__ import annotations

import pytest

from benchmarks.mutants import table
from benchmarks.mutants.catalogue import MUTANTS
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.running import Row

ROWS = {(row.mutant, row.mode): row for row in table.read(table.FOLDER / "kills.json")}
FAULTS = [one for one in MUTANTS if not one.equivalent]
HAZARDS: dict[str, list[Mutant]] = {}
for _one in MUTANTS:
    for _hazard in _one.hazards.split():
        HAZARDS.setdefault(_hazard, []).append(_one)

# Hazards of which all faults are equivalent: both sides take the function that has them.
UNSEEN_HAZARDS = {"B55"}


def row(mutant: Mutant, mode: str) -> Row:
    return ROWS[mutant.name, mode]


def tells(mutant: Mutant, mode: str) -> bool:
    """Whether a check killed the fault, and the message says where it is."""
    return row(mutant, mode).is_killed and row(mutant, mode).named


def test_every_fault_has_a_place_to_be_named() -> None:
    assert [one.name for one in FAULTS if not one.place.strip("/ ")] == []
    assert all(row(one, "tiny").place == one.place for one in FAULTS)


@pytest.mark.parametrize("mode", ["tiny", "full"])
def test_every_fault_is_killed_and_its_place_named(mode: str) -> None:
    ran = [one for one in FAULTS if one.words(mode)]
    assert [one.name for one in ran if not row(one, mode).is_killed] == []
    assert [one.name for one in ran if not tells(one, mode)] == []


@pytest.mark.parametrize("hazard", sorted(HAZARDS.keys() - UNSEEN_HAZARDS))
def test_a_fault_of_every_hazard_is_killed_with_its_place_named(hazard: str) -> None:
    assert any(tells(one, "tiny") for one in HAZARDS[hazard] if not one.equivalent)


def test_a_hazard_without_a_fault_that_can_be_seen_is_known() -> None:
    found = {name for name, mutants in HAZARDS.items() if all(one.equivalent for one in mutants)}
    assert found == UNSEEN_HAZARDS
