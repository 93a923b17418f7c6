"""The tables of sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sizes.table import COLUMNS, of_set, summary, write_results

NONE = dict.fromkeys(COLUMNS, 0)
ONE = dict.fromkeys(
    ("needed", "fields", "inputs", "argument", "open", "told", "wrong", "unchecked", "untraced"), 0
)
ONE = {**NONE, "case": "one", "needed": 3, "fields": 1, "inputs": 1, "argument": 1, "told": 2}
TWO = {**NONE, "case": "two"}


def content(*rows: dict) -> dict:
    return {"schema": 1, "set": "rest", "cases": list(rows)}


def test_a_line_per_case_and_their_sum() -> None:
    assert of_set(content(ONE, TWO)).splitlines()[2:] == [
        "| one | 3 | 1 | 1 | 1 | 0 | 2 | 0 | 0 | 0 | 0 |",
        "| two | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
        "| all | 3 | 1 | 1 | 1 | 0 | 2 | 0 | 0 | 0 | 0 |",
    ]


def test_shares_of_a_set_are_cut_and_never_rounded_up() -> None:
    (line,) = summary([content(ONE, TWO)]).splitlines()[2:]
    assert line.endswith("| 66.6 | 100 | 66.6 |")
    assert line.startswith("| 17 more packages | 2 | 3 |")


def test_of_nothing_there_is_no_share() -> None:
    assert summary([content(TWO)]).splitlines()[-1].endswith("| - | - | - |")


def test_the_section_of_the_page_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("before\n<!-- sizes-table -->\nformer\n<!-- /sizes-table -->\nafter\n")
    assert write_results(page, [content(ONE)])
    text = page.read_text()
    assert "former" not in text
    assert text.startswith("before\n<!-- sizes-table -->\n| code |")
    assert text.endswith("\n<!-- /sizes-table -->\nafter\n")
    assert "17 more packages: sizes, case by case" in text


@pytest.mark.parametrize("text", ["", "<!-- sizes-table -->\n"])
def test_a_page_without_the_section_is_left_alone(tmp_path: Path, text: str) -> None:
    page = tmp_path / "results.md"
    page.write_text(text)
    assert not write_results(page, [content(ONE)])
    assert page.read_text() == text


def test_the_other_sets_of_the_section_stay(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("<!-- sizes-table -->\n<!-- /sizes-table -->\n")
    write_results(page, [content(ONE)])
    write_results(page, [{**content(TWO), "set": "transformers"}])
    write_results(page, [content(ONE, TWO)])
    text = page.read_text()
    rest, other = text.index("| 17 more packages | 2 |"), text.index("| transformers 4.57.6 | 1 |")
    assert other < rest
    assert text.count(": sizes, case by case") == 2
    assert text.count("| two | 0 |") == 2
