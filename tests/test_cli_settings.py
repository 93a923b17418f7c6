"""``rewrite`` with the project's own settings in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnx_migrate.cli import main

LIBRARY_MODEL = """\
import flax.linen as nn
import lib


class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(lib.half(nn.Dense(8)(x)))
"""


def test_bad_settings_stop_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.py").write_text(LIBRARY_MODEL)
    (tmp_path / "pyproject.toml").write_text("[tool.nnx-migrate]\nimport = 1\n")
    assert main(["rewrite", str(tmp_path)]) == 2
    assert "did you mean imports?" in capsys.readouterr().err
    assert (tmp_path / "m.py").read_text() == LIBRARY_MODEL


def test_imports_declared_for_a_place_that_is_gone_stop_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.py").write_text(LIBRARY_MODEL)
    (tmp_path / "pyproject.toml").write_text('[tool.nnx-migrate.imports]\n"m.load" = []\n')
    assert main(["rewrite", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert '[tool.nnx-migrate.imports] "m.load": nothing is imported there by a name' in error
    assert error.count("\n") == 1
    assert (tmp_path / "m.py").read_text() == LIBRARY_MODEL
