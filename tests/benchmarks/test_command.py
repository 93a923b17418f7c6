from pathlib import Path

import pytest

from benchmarks.corpus.__main__ import main


def test_an_unknown_case_is_refused_before_anything_is_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--set", "transformers", "--only", "brt", "--cache", str(tmp_path / "cache")])
    assert stop.value.code == 2
    assert "--only brt: no such case or package in transformers" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()


def test_an_unknown_set_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--set", "everything"])
    assert stop.value.code == 2
    assert "flax-examples" in capsys.readouterr().err
