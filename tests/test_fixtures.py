"""The reference models are found in a checkout and in an installed wheel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nnx_migrate import fixtures


def test_in_a_checkout_they_are_beside_the_package() -> None:
    assert fixtures.path() == Path(__file__).resolve().parent.parent / "fixtures"


def test_in_a_wheel_they_are_inside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "nnx_migrate"
    shutil.copytree(fixtures.path(), package / "_fixtures")
    monkeypatch.setattr(fixtures, "__file__", str(package / "fixtures.py"))
    assert fixtures.path() == package / "_fixtures"


def test_an_incomplete_installation_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixtures, "__file__", str(tmp_path / "nnx_migrate" / "fixtures.py"))
    with pytest.raises(FileNotFoundError, match="reinstall"):
        fixtures.path()
