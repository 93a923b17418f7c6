"""``rewrite`` on trees: modes, reports, exit codes, bad input. The engine is a stand-in."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nnx_migrate.cli import main
from nnx_migrate.model import (
    JOURNAL_FOLDER,
    ClassMap,
    ClassResult,
    FileResult,
    FileStatus,
    Finding,
    MigrationMap,
    Outcome,
    RewriteResult,
    Tally,
)
from nnx_migrate.rewrite import forms
from nnx_migrate.rewrite.journal import journal_file
from nnx_migrate.rewrite.request import RewriteRequest


def stand_in(request: RewriteRequest) -> RewriteResult:
    """Turns ``linen`` into ``nnx``; ``refuse`` refuses, ``broken`` is a syntax error."""
    assert request.base is not None
    files: list[FileResult] = []
    classes: list[ClassResult] = []
    findings: list[Finding] = []
    for source in request.files:
        path = source.path.relative_to(request.base).as_posix()
        if "broken" in source.text:
            files.append(FileResult(path, FileStatus.FAILED, error="line 1: invalid syntax"))
        elif "linen" in source.text:
            code = source.text.replace("linen", "nnx")
            files.append(FileResult(path, FileStatus.REWRITTEN, code))
            classes.append(ClassResult("m.Model", path, 1, Outcome.REWRITTEN))
        else:
            files.append(FileResult(path, FileStatus.UNCHANGED))
        if "refuse" in source.text:
            findings.append(Finding("rule", path, 1, 1, Outcome.REFUSED, "by hand,\nplease"))
            classes.append(ClassResult("m.Hard", path, 1, Outcome.REFUSED, reason="hard"))
    return RewriteResult(
        files=tuple(files),
        classes=tuple(classes),
        findings=tuple(findings),
        references=Tally(total=len(classes), rewritten=len(classes) - len(findings))
        if not findings
        else Tally(total=2, rewritten=1, refused=1),
        migration_map=MigrationMap((ClassMap("m.Model", "m.Model"),)),
    )


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(forms, "rewrite_in", lambda request, form, loop, names: stand_in(request))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    write(root, "pyproject.toml", "")
    write(root, "a.py", "flax linen a\r\n")
    write(root, "pkg/b.py", "flax linen b")
    write(root, "pkg/c.py", "plain\n")
    return root


def write(root: Path, name: str, text: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def snapshot(root: Path) -> dict[str, bytes]:
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file() and JOURNAL_FOLDER not in file.parts and ".git" not in file.parts
    }


def report_of(file: Path) -> dict[str, dict[str, str]]:
    return {one["path"]: one for one in json.loads(file.read_text())["files"]}


def test_in_place_replaces_files_and_undo_takes_it_back(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = snapshot(tree)
    assert main(["rewrite", str(tree)]) == 0
    assert snapshot(tree) == {
        **before,
        "a.py": b"flax nnx a\r\n",
        "pkg/b.py": b"flax nnx b",
    }
    assert journal_file(tree).exists()
    assert main(["undo", str(tree)]) == 0
    assert snapshot(tree) == before
    assert not (tree / JOURNAL_FOLDER).exists()
    assert capsys.readouterr().err == ""


def test_undo_finds_the_journal_from_inside_and_right_above(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(tree)
    main(["rewrite", str(tree)])
    assert main(["undo"]) == 0
    main(["rewrite", str(tree)])
    monkeypatch.chdir(tree / "pkg")
    assert main(["undo"]) == 0
    assert snapshot(tree) == before


def test_undo_of_an_edited_file_needs_a_person(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["rewrite", str(tree)])
    (tree / "a.py").write_text("edited")
    assert main(["undo", "--root", str(tree)]) == 1
    assert "a.py: changed since the run" in capsys.readouterr().err
    assert (tree / "a.py").read_text() == "edited"
    assert (tree / "pkg" / "b.py").read_text() == "flax linen b"


def test_a_second_run_changes_nothing(tree: Path) -> None:
    main(["rewrite", str(tree)])
    before = snapshot(tree)
    assert main(["rewrite", str(tree)]) == 0
    assert snapshot(tree) == before
    assert main(["rewrite", "--check", str(tree)]) == 0


def test_output_writes_a_copy_and_leaves_the_tree_alone(tree: Path, tmp_path: Path) -> None:
    before = snapshot(tree)
    out = tmp_path / "new" / "out"
    assert main(["rewrite", str(tree), "--output", str(out)]) == 0
    assert snapshot(tree) == before
    assert not (tree / JOURNAL_FOLDER).exists()
    assert snapshot(out) == {**before, "a.py": b"flax nnx a\r\n", "pkg/b.py": b"flax nnx b"}


def test_output_of_one_file_is_that_file(tree: Path, tmp_path: Path) -> None:
    assert main(["rewrite", str(tree / "a.py"), "--output", str(tmp_path / "out")]) == 0
    assert snapshot(tmp_path / "out") == {"a.py": b"flax nnx a\r\n"}


def test_output_never_overwrites(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "out/mine.py", "mine")
    assert main(["rewrite", str(tree), "--output", str(tmp_path / "out")]) == 2
    assert "not empty" in capsys.readouterr().err
    assert snapshot(tmp_path / "out") == {"mine.py": b"mine"}


def test_check_tells_and_writes_nothing(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(tree)
    assert main(["rewrite", "--check", str(tree)]) == 1
    out = capsys.readouterr().out
    assert "would rewrite a.py\nwould rewrite pkg/b.py\n" in out
    assert "2 files would be rewritten, 1 unchanged, 0 failed" in out
    assert snapshot(tree) == before
    assert not (tree / JOURNAL_FOLDER).exists()


def test_diff_prints_a_patch_that_applies(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(tree)
    assert main(["rewrite", "--diff", str(tree)]) == 0
    patch = capsys.readouterr().out
    assert snapshot(tree) == before
    assert "-flax linen b\n\\ No newline at end of file\n+flax nnx b\n\\ No newline" in patch
    subprocess.run(
        ["git", "apply", "-"], input=patch.encode(), cwd=tree, check=True, capture_output=True
    )
    assert snapshot(tree)["a.py"] == b"flax nnx a\r\n"
    assert snapshot(tree)["pkg/b.py"] == b"flax nnx b"


def test_report_and_map_are_json_of_schema_1(tree: Path, tmp_path: Path) -> None:
    write(tree, "d.py", "refuse")
    report, mapping = tmp_path / "r.json", tmp_path / "m.json"
    words = ["rewrite", "--check", str(tree), "--report", str(report), "--map", str(mapping)]
    assert main(words) == 1
    content = json.loads(report.read_text())
    assert content["schema"] == 1
    assert content["files"][0] == {"path": "a.py", "status": "rewritten"}
    (refused,) = (one for one in content["classes"] if one["outcome"] == "refused")
    assert refused == {
        "name": "m.Hard",
        "path": "d.py",
        "line": 1,
        "outcome": "refused",
        "confidence": "exact",
        "new_arguments": [],
        "reason": "hard",
    }
    assert content["references"] == {
        "total": 2,
        "rewritten": 1,
        "bridged": 0,
        "refused": 1,
        "kept": 0,
    }
    assert content["findings"][0]["outcome"] == "refused"
    mapped = json.loads(mapping.read_text())
    assert (mapped["schema"], mapped["classes"][0]["linen"]) == (1, "m.Model")


def test_a_refusal_needs_a_person_and_is_printed_with_its_place(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, "d.py", "refuse")
    assert main(["rewrite", str(tree)]) == 1
    assert "d.py:1:1: rule: by hand, please\n" in capsys.readouterr().out


def test_paths_are_selected_and_class_names_are_passed_on(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RewriteRequest] = []

    def spy(request: RewriteRequest) -> RewriteResult:
        seen.append(request)
        return stand_in(request)

    monkeypatch.setattr(forms, "rewrite_in", lambda request, form, loop, names: spy(request))
    words = ["rewrite", str(tree), "--select", "pkg/*", "--select", "m.Model", "--exclude", "m.No*"]
    assert main(words) == 0
    (request,) = seen
    assert [source.path.name for source in request.files] == ["b.py", "c.py"]
    assert [source.path.name for source in request.context] == ["a.py"]
    assert (request.select, request.exclude) == (("m.Model",), ("m.No*",))
    assert (request.root, request.base) == (tree, tree)
    assert snapshot(tree)["a.py"] == b"flax linen a\r\n"


def test_the_project_around_path_is_read_only_context(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RewriteRequest] = []
    monkeypatch.setattr(
        forms,
        "rewrite_in",
        lambda request, form, loop, names: (seen.append(request), stand_in(request))[1],
    )
    assert main(["rewrite", str(tree / "pkg"), "-j", "3"]) == 0
    assert [source.path.name for source in seen[0].context] == ["a.py"]
    assert (seen[0].root, seen[0].base, seen[0].jobs) == (tree, tree / "pkg", 3)
    assert (tree / "a.py").read_bytes() == b"flax linen a\r\n"


# --- bad input: one line each, the other files done ---


def vanish(tree: Path) -> list[str]:
    return [str(tree), str(tree / "nowhere")]


def binary(tree: Path) -> list[str]:
    (tree / "bad.py").write_bytes(b"flax\0linen")
    return [str(tree)]


def undecodable(tree: Path) -> list[str]:
    (tree / "bad.py").write_bytes(b"flax = '\xff'\n")
    return [str(tree)]


def syntax(tree: Path) -> list[str]:
    write(tree, "bad.py", "broken")
    return [str(tree)]


def loop(tree: Path) -> list[str]:
    (tree / "bad").symlink_to(tree)
    return [str(tree)]


def outside(tree: Path) -> list[str]:
    write(tree.parent, "other/x.py", "flax linen")
    (tree / "bad.py").symlink_to(tree.parent / "other" / "x.py")
    return [str(tree)]


def read_only(tree: Path) -> list[str]:
    write(tree, "bad.py", "flax linen").chmod(0o444)
    return [str(tree)]


def read_only_directory(tree: Path) -> list[str]:
    write(tree, "locked/bad.py", "flax linen")
    (tree / "locked").chmod(0o555)
    return [str(tree)]


BAD = [
    (vanish, "nowhere: no such file or directory"),
    (binary, "bad.py: binary file"),
    (undecodable, "bad.py: undecodable: byte 0xff on line 1 is not UTF-8"),
    (syntax, "bad.py: line 1: invalid syntax"),
    (loop, "bad: symlink loop, not followed"),
    (outside, "bad.py: symlink out of the tree"),
    (read_only, "bad.py: read-only file"),
    (read_only_directory, "locked/bad.py: read-only directory"),
]


@pytest.fixture
def _writable_again(tree: Path) -> Iterator[None]:
    yield
    for place in (tree, *tree.rglob("*")):
        if not place.is_symlink():
            place.chmod(place.stat().st_mode | 0o200)


@pytest.mark.usefixtures("_writable_again")
@pytest.mark.parametrize(("make", "expected"), BAD, ids=[make.__name__ for make, _ in BAD])
def test_a_bad_file_among_good_ones_is_one_line_and_exit_1(
    make: Callable[[Path], list[str]],
    expected: str,
    tree: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = tmp_path / "r.json"
    assert main(["rewrite", *make(tree), "--report", str(report)]) == 1
    err = capsys.readouterr().err
    assert expected in err
    assert err.count("\n") == 1
    assert (tree / "a.py").read_bytes() == b"flax nnx a\r\n"
    failed = [one for one in report_of(report).values() if one["status"] == "failed"]
    assert len(failed) == 1
    assert failed[0]["error"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["nowhere"], "nowhere: no such file or directory"),
        (["empty"], "no Python file was found"),
        (["bad.py"], "binary file"),
    ],
)
def test_nothing_readable_is_exit_2(
    names: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.py").write_bytes(b"\0")
    assert main(["rewrite", *names]) == 2
    err = capsys.readouterr().err
    assert expected in err
    assert err.count("\n") == 1


def test_a_selection_of_nothing_is_exit_2(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rewrite", str(tree), "--select", "none/*.py"]) == 2
    assert "no Python file is selected" in capsys.readouterr().err


def test_only_failed_files_is_exit_2(tmp_path: Path) -> None:
    file = write(tmp_path, "bad.py", "broken")
    assert main(["rewrite", str(file)]) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_one_line(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "pkg" / "c.py").chmod(0)
    assert main(["rewrite", str(tree)]) == 1
    assert "pkg/c.py: unreadable: Permission denied" in capsys.readouterr().err


def test_a_read_failure_of_the_system_is_one_line(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = Path.read_bytes

    def denied(self: Path) -> bytes:
        if self.name == "c.py":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert main(["rewrite", str(tree)]) == 1
    assert "pkg/c.py: unreadable: Permission denied" in capsys.readouterr().err


def test_a_file_that_changes_during_the_run_fails_and_the_others_are_done(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(request: RewriteRequest) -> RewriteResult:
        (tree / "a.py").write_text("somebody else")
        return stand_in(request)

    monkeypatch.setattr(forms, "rewrite_in", lambda request, form, loop, names: slow(request))
    report = tmp_path / "r.json"
    assert main(["rewrite", str(tree), "--report", str(report)]) == 1
    assert "a.py: changed during the run" in capsys.readouterr().err
    assert (tree / "a.py").read_text() == "somebody else"
    assert (tree / "pkg" / "b.py").read_text() == "flax nnx b"
    content = json.loads(report.read_text())
    outcomes = {one["path"]: one["outcome"] for one in content["classes"]}
    assert outcomes == {"a.py": "refused", "pkg/b.py": "rewritten"}


def test_a_character_that_the_encoding_lacks_fails_that_file(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, "bad.py", "# coding: ascii\nflax linen\n")

    def accents(request: RewriteRequest) -> RewriteResult:
        result = stand_in(request)
        files = [
            replace(file, code=(file.code or "") + "é") if file.path == "bad.py" else file
            for file in result.files
        ]
        return replace(result, files=tuple(files))

    monkeypatch.setattr(forms, "rewrite_in", lambda request, form, loop, names: accents(request))
    assert main(["rewrite", str(tree)]) == 1
    assert "bad.py: its encoding ascii cannot hold" in capsys.readouterr().err
    assert (tree / "a.py").read_bytes() == b"flax nnx a\r\n"


def full_disk(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real = Path.replace

    def replace_file(self: Path, target: Path) -> Path:
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace_file)


def test_a_disk_that_fills_up_fails_the_file_and_running_again_finishes(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        full_disk(patch, "b.py")
        assert main(["rewrite", str(tree)]) == 1
    assert "pkg/b.py: disk full" in capsys.readouterr().err
    assert (tree / "pkg" / "b.py").read_bytes() == b"flax linen b"
    assert main(["rewrite", str(tree)]) == 0
    assert (tree / "pkg" / "b.py").read_bytes() == b"flax nnx b"


@pytest.mark.parametrize(
    ("full", "words"),
    [("journal.json", []), ("out", ["--output", "out"]), ("r.json", ["--report", "r.json"])],
)
def test_a_full_disk_elsewhere_is_exit_2(
    full: str,
    words: list[str],
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = snapshot(tree)
    full_disk(monkeypatch, full)
    assert main(["rewrite", str(tree), *words]) == 2
    err = capsys.readouterr().err
    assert "disk full" in err
    assert err.count("\n") == 1
    assert not (tmp_path / full).exists()
    if full != "r.json":
        assert snapshot(tree) == before


# --- killed runs ---


class Killed(BaseException):
    """The process dies here."""


def kill_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real = Path.replace

    def replace_file(self: Path, target: Path) -> Path:
        if Path(target).name == name:
            raise Killed
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace_file)


@pytest.mark.parametrize("name", ["a.py", "b.py"])
def test_a_killed_run_is_finished_by_running_it_again(
    name: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(tree)
    with monkeypatch.context() as patch:
        kill_at(patch, name)
        with pytest.raises(Killed):
            main(["rewrite", str(tree)])
    report = tmp_path / "r.json"
    assert main(["rewrite", str(tree), "--report", str(report)]) == 0
    statuses = {path: one["status"] for path, one in report_of(report).items()}
    assert statuses == {"a.py": "rewritten", "pkg/b.py": "rewritten", "pkg/c.py": "unchanged"}
    assert snapshot(tree)["a.py"] == b"flax nnx a\r\n"
    assert snapshot(tree)["pkg/b.py"] == b"flax nnx b"
    assert main(["undo", str(tree)]) == 0
    assert snapshot(tree) == before


def test_a_killed_run_stops_a_run_with_other_arguments(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        kill_at(patch, "b.py")
        with pytest.raises(Killed):
            main(["rewrite", str(tree)])
    before = snapshot(tree)
    assert main(["rewrite", str(tree), "--select", "pkg/*"]) == 2
    assert "was interrupted" in capsys.readouterr().err
    assert snapshot(tree) == before


def test_a_damaged_journal_is_exit_2(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rewrite", str(tree)])
    capsys.readouterr()
    journal_file(tree).write_text("{")
    assert main(["rewrite", str(tree)]) == 2
    assert main(["undo", str(tree)]) == 2
    err = capsys.readouterr().err
    assert err.count("unreadable journal") == 2
    assert err.count("\n") == 2


# --- git ---


@pytest.fixture
def repository(tree: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    git(tree, "init", "-q")
    commit(tree)
    return tree


def git(tree: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=tree, check=True, capture_output=True)


def commit(tree: Path) -> None:
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "state")


def test_uncommitted_changes_stop_the_run(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, "a.py", "flax linen edited")
    before = snapshot(repository)
    assert main(["rewrite", str(repository)]) == 2
    err = capsys.readouterr().err
    assert "a.py: uncommitted changes" in err
    assert err.count("\n") == 1
    assert snapshot(repository) == before
    assert main(["rewrite", "--allow-dirty", str(repository)]) == 0
    assert (repository / "a.py").read_text() == "flax nnx edited"


def test_an_untracked_file_counts_as_uncommitted(repository: Path) -> None:
    write(repository, "new.py", "flax linen")
    assert main(["rewrite", str(repository)]) == 2
    assert main(["rewrite", "--check", str(repository)]) == 1
    assert (repository / "new.py").read_text() == "flax linen"


def test_changes_to_files_that_stay_as_they_are_do_not_stop_the_run(repository: Path) -> None:
    write(repository, "pkg/c.py", "plain, edited")
    assert main(["rewrite", str(repository)]) == 0


def test_our_own_uncommitted_changes_do_not_stop_the_next_run(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["rewrite", str(repository)]) == 0

    def further(request: RewriteRequest) -> RewriteResult:
        result = stand_in(request)
        files = [
            FileResult(file.path, FileStatus.REWRITTEN, "flax nnx 2") if "a" in file.path else file
            for file in result.files
        ]
        return replace(result, files=tuple(files))

    monkeypatch.setattr(forms, "rewrite_in", lambda request, form, loop, names: further(request))
    assert main(["rewrite", str(repository)]) == 0
    assert (repository / "a.py").read_text() == "flax nnx 2"
    assert main(["undo", str(repository)]) == 0
    assert (repository / "a.py").read_bytes() == b"flax linen a\r\n"
