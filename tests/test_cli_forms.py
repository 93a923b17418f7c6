"""``rewrite --form``: what is written, said and returned for each of the three."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnx_migrate.cli import main
from tests.rewrite.projects import LINEN, dense, looped

TEXT = LINEN + dense("A") + looped("B")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "m.py").write_text(TEXT)
    return folder


def classes(report: Path) -> dict[str, tuple[str, str | None]]:
    content = json.loads(report.read_text())
    return {one["name"]: (one["outcome"], one.get("form")) for one in content["classes"]}


def test_auto_is_the_default_and_lazy_classes_need_no_person(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "r.json"
    assert main(["rewrite", str(project), "--report", str(report)]) == 0
    assert classes(report) == {"m.A": ("rewritten", "explicit"), "m.B": ("rewritten", "lazy")}
    assert "classes: 2 (1 explicit, 1 lazy)" in capsys.readouterr().out


def test_lazy_makes_every_class_lazy(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rewrite", str(project), "--form", "lazy"]) == 0
    expected = TEXT.replace("import flax.linen as nn", "import nnx_migrate.linen as nn")
    assert (project / "m.py").read_text() == expected
    assert "classes: 2 (2 lazy); references: 6 (6 rewritten)" in capsys.readouterr().out


def test_explicit_exits_with_1_and_says_what_stays_lazy_and_why(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rewrite", str(project), "--form", "explicit"]) == 1
    out = capsys.readouterr().out
    (why,) = [line for line in out.splitlines() if line.startswith("m.py:10:1: lazy: ")]
    assert why.startswith("m.py:10:1: lazy: m.B stays lazy: ")
    assert why.endswith(" (m.py:14)")  # where it loops
    assert "class A(nnx.Module)" in (project / "m.py").read_text()


HUB = """\
import importlib


def load(name):
    return vars(importlib.import_module(name))
"""


HELD = """\
class D(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.jit(nn.Dense)(2)(x)
"""


def test_a_reason_that_most_lazy_classes_share_is_said(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "m.py").write_text(LINEN + dense("A") + dense("C") + looped("B"))
    (project / "hub.py").write_text(HUB)
    assert main(["rewrite", str(project)]) == 0
    first, totals = capsys.readouterr().out.splitlines()
    assert first.startswith("lazy: 2 of 3 lazy classes for one reason: not proven: hub.py:5: ")
    assert first.endswith(
        'say which modules it imports: [tool.nnx-migrate.imports] "hub.load" = [...]'
    )
    assert "classes: 3 (3 lazy)" in totals


@pytest.mark.parametrize(
    ("text", "form"),
    [
        pytest.param(LINEN + dense("A") + looped("B"), "auto", id="of one class"),
        pytest.param(LINEN + looped("B") + HELD, "auto", id="of no two the same"),
        pytest.param(
            LINEN + dense("A") + dense("B"), "lazy", id="where lazy is what was asked for"
        ),
    ],
)
def test_a_reason_of_few_lazy_classes_is_for_the_report(
    project: Path, text: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "m.py").write_text(text)
    assert main(["rewrite", str(project), "--form", form]) == 0
    assert "reason" not in capsys.readouterr().out


def test_explicit_is_done_when_everything_is(project: Path) -> None:
    (project / "m.py").write_text(LINEN + dense("A"))
    assert main(["rewrite", str(project), "--form", "explicit"]) == 0


@pytest.mark.parametrize("form", ["auto", "lazy"])
def test_a_second_run_changes_nothing(project: Path, form: str) -> None:
    assert main(["rewrite", str(project), "--form", form]) == 0
    once = (project / "m.py").read_bytes()
    assert main(["rewrite", str(project), "--form", form, "--check"]) == 0
    assert (project / "m.py").read_bytes() == once


def test_lazy_code_becomes_explicit_later(project: Path, tmp_path: Path) -> None:
    assert main(["rewrite", str(project), "--form", "lazy"]) == 0
    report = tmp_path / "r.json"
    assert main(["rewrite", str(project), "--report", str(report)]) == 0
    assert classes(report) == {"m.A": ("rewritten", "explicit"), "m.B": ("rewritten", "lazy")}


def test_encoding_byte_order_mark_and_line_ends_stay(project: Path) -> None:
    crlf = TEXT.replace("\n", "\r\n").encode()
    latin = b"# -*- coding: latin-1 -*-\n# \xe9\n" + TEXT.encode()
    (project / "m.py").write_bytes(b"\xef\xbb\xbf" + crlf)
    (project / "n.py").write_bytes(latin)
    assert main(["rewrite", str(project), "--form", "lazy"]) == 0
    for name, before in (("m.py", b"\xef\xbb\xbf" + crlf), ("n.py", latin)):
        after = (project / name).read_bytes()
        assert after == before.replace(b"flax.linen", b"nnx_migrate.linen")


def test_an_unknown_form_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rewrite", str(project), "--form", "lasy"]) == 2
    assert "invalid choice: 'lasy'" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["lazy", "explicit"])
def test_both_forms_are_explained(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", form]) == 0
    assert "nnx_migrate.linen" in capsys.readouterr().out or form == "explicit"
