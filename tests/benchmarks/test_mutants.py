"""The mutation suite: what it runs, what it makes of reports, and some mutants themselves."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.mutants import __main__ as suite
from benchmarks.mutants import table
from benchmarks.mutants.catalogue import MUTANTS
from benchmarks.mutants.hazards import BEYOND, ELSEWHERE, HAZARDS, unplaced
from benchmarks.mutants.mutant import (
    REWRITER,
    Mutant,
    MutantError,
    require_applicable,
    tree_digest,
)
from benchmarks.mutants.running import KEPT, Row, run
from benchmarks.mutants.unmutated import words_of
from benchmarks.sources import ROOT
from nnx_migrate.parity.certificate import score
from nnx_migrate.parity.certificate.data import Tally
from tests.test_imports import ALLOWED

ONE = Mutant("one", "gqa/model.py", "x = self.decoder_norm(x)", "x = x", "model=a", "", "norm")
KILLED = Row("one", "tiny", "model=a", "different", ("forward",), "norm", True, "", 1.0, "d", "t")


def test_every_mutant_can_be_applied() -> None:
    require_applicable(MUTANTS)
    assert len(MUTANTS) >= 100


def test_every_hazard_is_a_mutant_or_has_a_test_or_a_reason() -> None:
    assert unplaced(MUTANTS) == []
    assert unplaced([]) == [one for one in HAZARDS if one not in {*ELSEWHERE, *BEYOND}] != []
    named = {one for mutant in MUTANTS for one in mutant.hazards.split()}
    assert {*named, *ELSEWHERE, *BEYOND} <= {*HAZARDS}
    assert not ELSEWHERE.keys() & BEYOND.keys()


@pytest.mark.parametrize("hazard", ELSEWHERE)
def test_a_test_that_shows_a_hazard_is_there(hazard: str) -> None:
    file, _, name = ELSEWHERE[hazard].partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def test_rows_depend_on_no_folder_that_parity_imports_nothing_of() -> None:
    reached = {"parity"}
    while more := {one for part in reached for one in ALLOWED[part]} - reached:
        reached |= more
    assert {"nn", "sharding"} < reached
    assert not reached & {*REWRITER}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"old": "no such text"}, "expected 'no such text' once .*, found it 0 times"),
        ({"old": "cfg = self.config"}, "once in fixtures/gqa/nnx/model.py, found it [2-9] times"),
        ({"file": "gqa/no.py"}, "one: there is no file fixtures/gqa/nnx/no.py"),
    ],
)
def test_a_mutant_that_cannot_be_applied_is_an_error(change: dict[str, str], message: str) -> None:
    with pytest.raises(MutantError, match=message):
        require_applicable((replace(ONE, **change),))


def test_two_mutants_of_one_name_are_an_error() -> None:
    with pytest.raises(MutantError, match=r"found twice: \['one'\]"):
        require_applicable((ONE, ONE))


def test_a_command_runs_without_a_fault_before_the_mutants_it_has_to_kill() -> None:
    full = replace(ONE, name="two", full="model=a size=full")
    assert suite.jobs_of((ONE, full), ("tiny", "full")) == [
        (None, "tiny", ("model=a",)),
        (ONE, "tiny", ("model=a",)),
        (full, "tiny", ("model=a",)),
        (None, "full", ("model=a", "size=full")),
        (full, "full", ("model=a", "size=full")),
    ]


@pytest.mark.parametrize(
    ("row", "killed"),
    [
        (KILLED, True),
        (replace(KILLED, verdict="equal_by_rules"), False),
        (replace(KILLED, verdict="exit code 2", killed_by=()), False),
        (replace(KILLED, killed_by=()), False),
    ],
)
def test_only_a_check_that_failed_kills(row: Row, killed: bool) -> None:
    assert row.is_killed is killed
    assert table.survivors([row], [ONE]) == ([] if killed else [row])


def test_an_equivalent_mutant_is_no_survivor_and_its_reason_is_shown() -> None:
    same = replace(ONE, equivalent="it computes the same")
    row = replace(KILLED, verdict="equal_by_rules", killed_by=())
    assert table.survivors([row], [same]) == []
    assert "- one: it computes the same" in table.markdown([row], [same])


def test_an_equivalent_mutant_that_is_killed_is_told() -> None:
    assert table.survivors([KILLED], [replace(ONE, equivalent="it computes the same")]) == [KILLED]


def test_the_score_is_over_all_mutants_and_no_equivalent_one_counts_as_killed() -> None:
    same = replace(ONE, name="same", equivalent="it computes the same", full="model=a size=full")
    alive = replace(ONE, name="alive")
    rows = [KILLED, replace(KILLED, mutant="same"), replace(KILLED, mutant="alive", killed_by=())]
    nowhere = replace(ONE, name="not run")
    found = table.tallies(rows, [ONE, same, alive, nowhere])
    assert found == {"tiny": Tally(4, 1, 1, 1), "full": Tally(1, 1, 0, 0)}  # type: ignore[arg-type]


@pytest.mark.parametrize(("tree", "is_claimed"), [("now", True), ("then", False)])
def test_a_score_of_rows_of_other_sources_is_not_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: str, is_claimed: bool
) -> None:
    monkeypatch.setattr(suite, "tree_digest", lambda: "now")
    monkeypatch.setattr(score, "FILE", tmp_path / "score.json")
    suite._keep_score([replace(KILLED, tree="now"), replace(KILLED, tree=tree)], tmp_path)
    assert not (tmp_path / "score.json").exists()  # another folder's tables
    suite._keep_score([replace(KILLED, tree="now"), replace(KILLED, tree=tree)], table.FOLDER)
    found = score.mutation_score(tmp_path / "score.json")
    assert (found.state == "of this version") is is_claimed


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "kills.json"
    assert table.read(path) == []
    table.write(path, [KILLED, replace(KILLED, mutant="")])
    assert table.read(path) == [KILLED, replace(KILLED, mutant="")]


def test_the_committed_table_is_of_the_mutants_as_they_are_now() -> None:
    rows = table.read(table.FOLDER / "kills.json")
    found = {(row.mutant, row.mode, row.words, row.definition) for row in rows if row.mutant}
    jobs = suite.jobs_of(MUTANTS, ("tiny", "full"))
    assert found <= {(m.name, mode, " ".join(words), m.digest()) for m, mode, words in jobs if m}
    assert table.survivors(rows, MUTANTS) == []


@pytest.mark.parametrize(
    ("message", "place", "is_current"),
    [
        ("x" * KEPT, "elsewhere", False),  # it may be in the part that was cut
        ("elsewhere" + "x" * KEPT, "elsewhere", True),
        ("x", "elsewhere", True),
        ("x" * KEPT, KILLED.place, True),
    ],
)
def test_a_row_of_which_the_message_was_cut_is_not_believed_to_lack_another_place(
    message: str, place: str, is_current: bool
) -> None:
    row = replace(KILLED, message=message[:KEPT], definition=ONE.digest())
    assert suite._is_current(row, replace(ONE, place=place), None) is is_current


def test_an_unknown_mutant_ends_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert suite.main(["--mutant", "nothing"]) == 2
    assert capsys.readouterr().err == "error: no such mutants: nothing\n"


def test_a_run_without_a_fault_has_the_same_words_every_time() -> None:
    assert [words_of(number) for number in range(60)] == [words_of(number) for number in range(60)]
    assert len({words_of(number) for number in range(60)}) == 60


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "a residual left out",
        "remat left out",
        "a stack of another name",
        "the last rule of a name wins",
        "the loss's scale",
        "Muon over other axes",
    ],
)
def test_the_default_command_kills(name: str) -> None:
    (mutant,) = (one for one in MUTANTS if one.name == name)
    row = run(mutant, "tiny", mutant.words("tiny"), tree_digest())
    assert row.is_killed, row
