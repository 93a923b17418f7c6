"""The command line: words in, exit code and lines out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nnx_migrate.cli import main

LINEN = """import flax.linen as nn


class Model(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.features)(x)
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["rewrit"], "unknown command 'rewrit' (did you mean rewrite?)"),
        (["zzz"], "unknown command 'zzz'"),
        (["rewrite"], "the following arguments are required: PATH"),
        (["rewrite", ".", "--chek"], "unknown option --chek (did you mean --check?)"),
        (["rewrite", ".", "--reprot=x"], "unknown option --reprot (did you mean --report?)"),
        (["rewrite", ".", "--zzz"], "unknown option --zzz;"),
        (["rewrite", ".", "-j", "0"], "expected a whole number of at least 1"),
        (["rewrite", ".", "-j", "x"], "expected a whole number of at least 1"),
        (["rewrite", ".", "--diff", "--check"], "not allowed with"),
        (["rewrite", ".", "--evidence", "e.db"], "--evidence e.db: no such file"),
        (["rewrite", ".", "--root", "nowhere"], "--root nowhere: expected a directory"),
        (["rewrite", ".", "--report", "no/r.json"], "expected a file in an existing directory"),
        (["rewrite", ".", "--map", "."], "expected a file in an existing directory"),
        (["undo"], "no journal of an in-place run"),
        (["undo", "--root", "."], "no journal of an in-place run"),
        (["undo", "a", "b"], "unexpected argument 'b'"),
        (["explain", "Dens"], "unknown rule 'Dens' (did you mean Dense?)"),
        (["record", "-o", "x"], "record: expected -- and a command"),
        (["checkpoint", "a", "b"], "checkpoint: not available yet"),
    ],
)
def test_a_command_line_that_cannot_be_used_is_one_line(
    words: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err
    assert err.startswith("nnx-migrate: error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--help"], "rewrite"),
        (["--version"], "nnx-migrate 0"),
        (["rewrite", "--help"], "--allow-dirty"),
        (["record", "--help"], "-- COMMAND..."),
        (["explain", "Dense"], "nnx.Linear"),
    ],
)
def test_help_is_on_stdout(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert expected in " ".join(out.split())
    assert err == ""


def test_an_unknown_parity_key_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parity", "casse=x.py"]) == 2
    err = capsys.readouterr().err
    assert "did you mean case?" in err
    assert err.count("\n") == 1


def test_an_internal_error_is_one_line_and_a_traceback_only_on_demand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> int:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("nnx_migrate.cli.run", broken)
    assert main(["undo"]) == 2
    err = capsys.readouterr().err
    assert "internal error: RuntimeError: two lines" in err
    assert err.count("\n") == 1
    monkeypatch.setenv("NNX_MIGRATE_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["undo"])


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        (["undo"], ""),
        (["parity", "case=a.py"], ""),
        (["rewrite", "."], "; run again to finish, or `nnx-migrate undo`"),
    ],
)
def test_an_interrupt_is_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    rest: str,
) -> None:
    def stopped(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("nnx_migrate.cli.run", stopped)
    assert main(words) == 2
    assert capsys.readouterr().err == f"nnx-migrate: error: interrupted{rest}\n"


def test_a_reader_that_leaves_causes_no_traceback(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"m{number}.py").write_text(LINEN)
    command = f"{sys.executable} -m nnx_migrate rewrite --check {tmp_path} | head -n 1"
    done = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    assert done.stdout.startswith("would rewrite m0.py")
    assert done.stderr == ""


def test_the_module_runs_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(LINEN)
    done = subprocess.run(
        [sys.executable, "-m", "nnx_migrate", "rewrite", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 files rewritten" in done.stdout
    assert "nnx.Module" in (tmp_path / "models.py").read_text()
