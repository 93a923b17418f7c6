"""Runs over the same texts are decided once; any difference that may matter decides anew."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nnx_migrate.cli import main
from nnx_migrate.model import FileResult, FileStatus, Finding, Outcome, RewriteResult
from nnx_migrate.rewrite import cache, forms
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import SourceText
from nnx_migrate.source.settings import Settings

LINEN = """\
import flax.linen as nn

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)
"""


class Engine:
    """Counts its calls; the result says which call made it."""

    def __init__(self, *findings: Finding) -> None:
        self.calls = 0
        self.findings = findings

    def __call__(self, request: RewriteRequest) -> RewriteResult:
        self.calls += 1
        file = FileResult("net.py", FileStatus.REWRITTEN, code=f"# {self.calls}\n")
        return RewriteResult(files=(file,), findings=self.findings)


def request(tmp_path: Path, text: str = LINEN, around: str = "") -> RewriteRequest:
    files = (SourceText(tmp_path / "net.py", text, "utf-8", False),)
    context = (SourceText(tmp_path / "train.py", around, "utf-8", False),)
    return RewriteRequest(tmp_path, files, context, base=tmp_path)


def test_the_same_texts_are_decided_once(tmp_path: Path) -> None:
    engine = Engine()
    first, second = (cache.through(tmp_path, request(tmp_path), "auto", engine) for _ in range(2))
    assert first == second
    assert (engine.calls, first.files[0].code) == (1, "# 1\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, files=request(one.root, LINEN + "\n").files),
        lambda one: replace(one, context=request(one.root, around="import net\n").context),
        lambda one: replace(one, files=(*one.files, *one.context), context=()),
        lambda one: replace(one, select=("net.Net",)),
        lambda one: replace(one, exclude=("net.Net",)),
        lambda one: replace(one, settings=Settings(table="{'shapes': {}}")),
        lambda one: replace(one, evidence=Path(__file__)),
        lambda one: replace(one, base=one.root.parent),
    ],
    ids=["file", "context", "target", "select", "exclude", "settings", "evidence", "base"],
)
def test_what_may_matter_decides_anew(
    change: Callable[[RewriteRequest], RewriteRequest], tmp_path: Path
) -> None:
    engine = Engine()
    cache.through(tmp_path, request(tmp_path), "auto", engine)
    cache.through(tmp_path, change(request(tmp_path)), "auto", engine)
    assert engine.calls == 2


def test_another_form_decides_anew(tmp_path: Path) -> None:
    engine = Engine()
    for form in ("auto", "lazy"):
        cache.through(tmp_path, request(tmp_path), form, engine)
    assert engine.calls == 2


def test_a_base_in_another_package_that_changes_decides_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "layers_of_others"
    package.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(package.parent))
    text = "from flax import linen as nn\nfrom layers_of_others import Base\n\nclass Net(Base):\n    x: int = 1\n"
    project = tmp_path / "project"
    engine = Engine()
    for base in ("nn.Module", "object"):
        (package / "__init__.py").write_text(
            f"import flax.linen as nn\n\nclass Base({base}): ...\n"
        )
        for remembered in ("_has_linen", "_is_linen", "_named"):
            getattr(cache.foreign_bases.__globals__[remembered], "cache_clear")()  # noqa: B009
        cache.through(tmp_path, request(project, text), "auto", engine)
    assert engine.calls == 2


def test_a_result_with_an_internal_error_is_not_kept(tmp_path: Path) -> None:
    engine = Engine(Finding("internal", "net.py", 1, 1, Outcome.REWRITTEN, "out of time"))
    for _ in range(2):
        cache.through(tmp_path, request(tmp_path), "auto", engine)
    assert engine.calls == 2


class Runs:
    """A pickle that calls a function when it is read."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("made",)


@pytest.mark.parametrize(
    "content",
    [b"", b"nothing", pickle.dumps(1), pickle.dumps(Runs()), pickle.dumps(RewriteResult())[:-9]],
    ids=["empty", "text", "number", "code", "half"],
)
def test_what_is_no_result_is_made_again(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = Engine()
    cache.through(tmp_path, request(tmp_path), "auto", engine)
    (file,) = tmp_path.glob("*.result")
    file.write_bytes(content)
    assert cache.through(tmp_path, request(tmp_path), "auto", engine).files[0].code == "# 2\n"
    assert not (tmp_path / "made").exists()


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    engine = Engine()
    for number in (1, 2):
        result = cache.through(tmp_path / "file", request(tmp_path), "auto", engine)
        assert result.files[0].code == f"# {number}\n"


def test_only_the_newest_results_are_kept(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for number in range(20):
        cache.through(tmp_path, request(tmp_path, f"# {number}\n"), "auto", Engine())
    assert len(list(tmp_path.glob("*.result"))) == 16
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "named", "calls"),
    [((), "cache", 1), (("--no-cache",), "cache", 2), ((), "", 2)],
    ids=["cache", "option", "environment"],
)
def test_the_command_decides_once_unless_told(
    words: tuple[str, ...],
    named: str,
    calls: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "net.py").write_text(LINEN)
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / named) if named else "")
    made: list[RewriteResult] = []
    real = forms.rewrite_in

    def counted(one: RewriteRequest, form: str, loop: str, names: str) -> RewriteResult:
        made.append(real(one, form, loop, names))
        return made[-1]

    monkeypatch.setattr(forms, "rewrite_in", counted)
    printed = []
    for _ in range(2):
        assert main(["rewrite", str(project), "--diff", *words]) == 0
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1]
    assert "+import nnx_migrate" in printed[0].out or "+from flax import nnx" in printed[0].out
    assert len(made) == calls


def test_without_a_word_it_is_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.folder() == Path("/somewhere/nnx-migrate")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/one")
    assert cache.folder() == Path("/home/one/.cache/nnx-migrate")
