"""What is drawn of a seed is always the same."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from hypothesis import Phase, given, seed, settings

from benchmarks.generated import drawing
from benchmarks.generated.writing import Piece


def _drawn() -> list[Piece]:
    found: list[Piece] = []

    @seed(0)
    @settings(max_examples=500, database=None, phases=(Phase.generate,))
    @given(drawing.pieces("alpha0", "self.flag", (), "compact"))
    def keep(piece: Piece) -> None:
        found.append(piece)

    keep()
    return found


def test_pieces_do_not_change_with_the_modules_that_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [Piece((str(number),), ()) for number in range(400)]
    monkeypatch.setattr(drawing, "KINDS", (lambda *_: many,))
    before = _drawn()
    (tmp_path / "numbers_of_mine.py").write_text(f"NUMBERS = {[*range(100, 600)]}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("numbers_of_mine")
    assert len({*before}) > 100
    assert _drawn() == before
