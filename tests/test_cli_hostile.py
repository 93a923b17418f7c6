"""Hostile and mistaken input: a line that says what to do, exit code 2, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnx_migrate.cli import main
from nnx_migrate.rewrite.journal import DIRECTORY, digest, journal_file, original_file

MODEL = """\
import flax.linen as nn


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    (root / "model.py").write_text(MODEL)
    return root


def contents(directory: Path) -> dict[str, str]:
    return {
        file.relative_to(directory).as_posix(): file.read_text()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and (DIRECTORY not in file.parts or file.name == "mine.txt")
    }


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command refuses its input."""
    capsys.readouterr()
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "please report" not in said.err
    return said.err


def test_undo_restores_nothing_outside_the_root(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "victim").write_text("precious")
    old, new = digest(b"evil"), digest(b"precious")
    original_file(root, old).parent.mkdir(parents=True)
    original_file(root, old).write_text("evil")
    entry = {"path": "../victim", "before": old, "found": new, "after": new}
    journal = {"schema": 1, "state": "done", "run": [], "entries": [entry]}
    journal_file(root).write_text(json.dumps(journal))
    line = refused(["undo", str(root)], capsys)
    assert f"{journal_file(root)}: entry '../victim': expected a path inside {root}" in line
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_file_outside_the_root_is_not_rewritten_in_place(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").mkdir()
    line = refused(["rewrite", str(root), "--root", str(tmp_path / "other")], capsys)
    assert "expected a directory that holds" in line
    assert (root / "model.py").read_text() == MODEL
    assert main(["rewrite", str(root), "--root", str(tmp_path / "other"), "--check"]) == 1
