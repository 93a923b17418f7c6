from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpus import table
from benchmarks.corpus.run import required


def result(*rows: dict[str, Any], chosen: str = "flax-examples") -> dict[str, Any]:
    tally = {"rewritten": 3, "bridged": 1, "refused": 0, "kept": 0, "total": 4}
    package = {
        "name": "wmt",
        "error": "",
        "classes": tally,
        "references": tally,
        "call_sites": tally,
        "seconds": 1.25,
    }
    return {"schema": 1, "set": chosen, "packages": [package], "cases": list(rows)}


def row(verdict: str, *, rewritten: int = 2, refused: int = 0, detail: str = "") -> dict[str, Any]:
    ok = verdict in ("identical", "equal_by_rules", "numerically_equal")
    classes = {"rewritten": rewritten, "bridged": 0, "refused": refused, "kept": 0}
    return {
        "case": "wmt",
        "verdict": verdict,
        "ok": ok,
        "classes": classes,
        "seconds": 2.0,
        "detail": detail,
    }


def test_the_summary_counts_classes_and_cases_at_parity() -> None:
    lines = table.summary([result(row("identical"), row("different"))]).splitlines()
    assert lines[-1] == (
        "| Flax 0.12.8, `examples/` | 3 / 1 / 0 / 0 | 3 / 4 | 1 of 2 | 1 identical, 1 different |"
    )


def test_a_failed_case_says_why_in_its_row() -> None:
    text = table.results_of_set(result(row("error", detail="before side: a | b\nc")))
    assert text.splitlines()[-1] == (
        "| wmt | 2 / 0 / 0 / 0 | error: before side: a \\| b c | 2.0 |"
    )


def test_the_page_section_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("before\n<!-- corpus-table -->\nold\n<!-- /corpus-table -->\nafter\n")
    assert table.write_results(page, [result(row("identical"))])
    text = page.read_text()
    assert text.startswith("before\n<!-- corpus-table -->\n| code |")
    assert text.endswith("<!-- /corpus-table -->\nafter\n")
    assert "old" not in text


def test_a_page_without_a_section_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("text\n")
    assert not table.write_results(page, [result(row("identical"))])
    assert page.read_text() == "text\n"


@pytest.mark.parametrize(
    ("verdict", "refused", "contradicts"),
    [("different", 0, True), ("different", 1, False), ("identical", 0, False), ("error", 0, False)],
)
def test_only_a_wholly_rewritten_case_that_differs_contradicts_itself(
    verdict: str, refused: int, contradicts: bool
) -> None:
    assert bool(required(result(row(verdict, refused=refused)))) is contradicts
