"""Hostile and mistaken input: a line that says what to do, exit code 2, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from nnx_migrate.cli import main
from nnx_migrate.digests import digest
from nnx_migrate.model import JOURNAL_FOLDER
from nnx_migrate.rewrite.journal import journal_file, original_file
from nnx_migrate.source import discovery
from tests.hostile import FEW, mutations

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
        if file.is_file() and (JOURNAL_FOLDER not in file.parts or file.name == "mine.txt")
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


@pytest.mark.parametrize(
    "words",
    [
        ["--report", "model.py"],
        ["--map", "pyproject.toml"],
        ["--report", "sizes.db"],
        ["--map", "link.json"],
        ["--report", f"{JOURNAL_FOLDER}/journal.json"],
        ["--report", "new.json", "--map", "new.json"],
        ["--report", "new.json", "--map", "../root/new.json"],
        ["--report", "dangling.json", "--map", "new.json"],
        ["--report", "new", "--output", "new"],
        ["--report", "pipe"],
    ],
)
def test_a_report_or_map_never_replaces_what_is_read_or_the_other(
    root: Path,
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(root)
    (root / JOURNAL_FOLDER).mkdir()
    (root / "sizes.db").write_text("evidence")
    (root / "link.json").symlink_to("model.py")
    (root / "dangling.json").symlink_to("new.json")
    os.mkfifo(root / "pipe")
    before = contents(root)
    line = refused(["rewrite", ".", "--evidence", "sizes.db", *words], capsys)
    option = words[2] if len(words) > 2 and words[2] == "--map" else words[0]
    assert line.startswith(f"nnx-migrate: error: {option} ")
    assert ": expected a file" in line
    assert contents(root) == before


@pytest.mark.parametrize("content", [b"weights: [1, 2]\n", b"\x93NUMPY\x01", b'{"a": 1}'])
def test_a_report_replaces_no_file_that_this_tool_did_not_write(
    root: Path, content: bytes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    (root / "config").write_bytes(content)
    line = refused(["rewrite", ".", "--check", "--report", "config"], capsys)
    assert "--report config: expected a new file or one that this tool wrote" in line
    assert (root / "config").read_bytes() == content


def test_a_report_replaces_an_earlier_one_and_an_empty_file(root: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("")
    for _ in range(2):
        assert main(["rewrite", str(root), "--check", "--report", str(report)]) == 1
        assert json.loads(report.read_text())["schema"] == 1


@pytest.mark.parametrize("words", [["rewrite", ""], ["undo", ""], ["rewrite", ".", "--map", ""]])
def test_an_empty_path_is_not_the_folder_that_one_is_in(
    root: Path,
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(root)
    before = contents(root)
    assert "expected a path, found an empty text" in refused(words, capsys)
    assert contents(root) == before


def test_a_report_is_written_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("report.json")
    assert main(["rewrite", str(root), "--report", str(tmp_path / "link.json")]) == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "report.json").read_text())["schema"] == 1


@pytest.mark.parametrize("name", ["empty.py", "shim.txt"])
def test_record_never_replaces_a_source(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("")
    line = refused(["record", "-o", name, "--shim", name, "--", "true"], capsys)
    assert f"-o {name}: expected a file" in line
    assert (tmp_path / name).read_text() == ""


def test_a_notebook_is_not_said_to_be_unchanged(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "book.ipynb").write_text("{}")
    assert "found a notebook: convert it" in refused(["rewrite", str(root / "book.ipynb")], capsys)
    assert main(["rewrite", str(root / "model.py"), str(root / "book.ipynb")]) == 1
    said = capsys.readouterr()
    assert "book.ipynb: expected a Python file, found a notebook" in said.err
    assert "1 files rewritten, 0 unchanged, 1 failed" in said.out


def test_a_folder_of_the_project_that_is_named_like_the_journal_stays(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / JOURNAL_FOLDER / "own").mkdir(parents=True)
    (root / JOURNAL_FOLDER / "own" / "mine.txt").write_text("mine")
    before = contents(root)
    line = refused(["rewrite", str(root)], capsys)
    assert f"{root / JOURNAL_FOLDER / 'own'}: expected the journal of in-place runs" in line
    assert contents(root) == before


def test_a_file_that_is_named_like_the_journal_stays(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / JOURNAL_FOLDER).write_text("mine")
    assert "found a file; move it elsewhere" in refused(["rewrite", str(root)], capsys)
    assert (root / JOURNAL_FOLDER).read_text() == "mine"
    assert (root / "model.py").read_text() == MODEL


@pytest.mark.parametrize("name", ["", "originals", "lock", ".gitignore"])
def test_links_in_the_journal_lead_nowhere(
    root: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "photo").write_text("precious")
    if name:
        (root / JOURNAL_FOLDER).mkdir()
    folder = name in ("", "originals")
    (root / JOURNAL_FOLDER / name).symlink_to(outside if folder else outside / "photo")
    assert "found a link; move it elsewhere" in refused(["rewrite", str(root)], capsys)
    assert contents(outside) == {"photo": "precious"}
    assert (root / "model.py").read_text() == MODEL


def test_a_link_where_new_content_waits_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (root / ".model.py.nnx-migrate-new").symlink_to(tmp_path / "victim")
    assert main(["rewrite", str(root)]) == 0
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (root / "model.py").is_symlink()


def test_undo_leaves_a_file_that_someone_put_beside_the_journal(root: Path) -> None:
    assert main(["rewrite", str(root)]) == 0
    (root / JOURNAL_FOLDER / "mine.txt").write_text("mine")
    assert main(["undo", str(root)]) == 0
    assert (root / "model.py").read_text() == MODEL
    assert [file.name for file in (root / JOURNAL_FOLDER).iterdir()] == ["mine.txt"]


def unprivileged(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as one to whom modes of files apply, which is not so for root."""
    lost = "-dac_override,-dac_read_search"
    prefix: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root, and setpriv is not installed")
        prefix = ["setpriv", f"--bounding-set={lost}", f"--inh-caps={lost}"]
    return subprocess.run(
        [*prefix, sys.executable, "-m", "nnx_migrate", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )


@pytest.fixture
def _writable_again(root: Path) -> Iterator[None]:
    yield
    for place in (root, root / "sub", root / JOURNAL_FOLDER):
        if place.is_dir():
            place.chmod(0o755)


@pytest.mark.usefixtures("_writable_again")
@pytest.mark.parametrize(
    ("place", "mode", "code", "line"),
    [
        ("sub", 0o000, 1, "sub: unreadable directory: Permission denied\n"),
        ("sub", 0o555, 1, "sub/m.py: read-only directory: make it writable, or leave it out"),
        (".", 0o555, 2, f"/{JOURNAL_FOLDER}: not written: Permission denied"),
        (".", 0o000, 2, "/root/pyproject.toml: Permission denied: make it accessible"),
    ],
)
def test_a_folder_that_one_may_not_use_is_one_line(
    root: Path, place: str, mode: int, code: int, line: str
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "m.py").write_text(MODEL)
    before = contents(root)
    (root / place).chmod(mode)
    done = unprivileged("rewrite", str(root))
    (root / place).chmod(0o755)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert line in done.stderr
    assert contents(root / "sub") == {"m.py": MODEL}
    assert (contents(root) == before) is (code == 2)


@pytest.mark.usefixtures("_writable_again")
@pytest.mark.parametrize(
    ("mode", "line"), [(0o555, "read-only directory: make it writable; nothing was restored"),
                       (0o000, "Permission denied")]
)  # fmt: skip
def test_undo_with_a_journal_that_one_may_not_use_restores_nothing(
    root: Path, mode: int, line: str
) -> None:
    assert main(["rewrite", str(root)]) == 0
    after = contents(root)
    (root / JOURNAL_FOLDER).chmod(mode)
    done = unprivileged("undo", str(root))
    (root / JOURNAL_FOLDER).chmod(0o755)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{root / JOURNAL_FOLDER}" in done.stderr
    assert line in done.stderr
    assert contents(root) == after


@FEW
@given(content=mutations(MODEL.encode()))
def test_any_change_of_a_source_is_rewritten_or_refused_without_a_fault_of_ours(
    root: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "model.py").write_bytes(content)
    assert main(["rewrite", str(root), "--check", "--no-cache"]) in (0, 1, 2)
    said = capsys.readouterr()
    assert "please report" not in said.out + said.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["rewrite", "{root}", "--check", "--root", "/"], "--root /"),
        (["rewrite", "{root}", "--root", "{root}/up"], "--root {root}/up"),
        (["rewrite", "/", "--check"], "/"),
        (["rewrite", "{root}/model.py", "{root}/up", "--check"], "{root}/up"),
    ],
)
def test_the_root_of_the_file_system_is_no_project(
    root: Path, words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "up").symlink_to("/")
    line = refused([word.format(root=root) for word in words], capsys)
    expected = "expected the directory of a project, found the root of the file system"
    assert line == f"nnx-migrate: error: {named.format(root=root)}: {expected}\n"


@pytest.mark.parametrize("path", ["loop/a", "loop"])
def test_a_path_that_leads_nowhere_is_one_line(
    root: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "loop").symlink_to("loop")
    refused(["rewrite", str(root / path), "--check"], capsys)


@pytest.mark.parametrize(
    ("bound", "found"), [("MOST_FILES", "10 Python files"), ("MOST_ENTRIES", "10 files and dir")]
)
@pytest.mark.parametrize("words", [["--root", "{root}"], []])
def test_a_root_that_holds_more_than_a_project_is_refused(
    root: Path,
    words: list[str],
    bound: str,
    found: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(discovery, bound, 10)
    for number in range(11):
        (root / "other" / f"d{number}").mkdir(parents=True)
        (root / "other" / f"d{number}" / "a.py").write_text("")
    (root / "z").mkdir()
    (root / "z" / "model.py").write_text(MODEL)
    line = refused(
        ["rewrite", str(root / "z"), "--check", *(word.format(root=root) for word in words)], capsys
    )
    assert f"{root}: expected the root of a project, found more than {found}" in line
    assert main(["rewrite", str(root / "z"), "--check", "--root", str(root / "z")]) == 1
