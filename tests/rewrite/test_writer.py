"""Files are replaced whole, runs can be finished and undone from any point."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from nnx_migrate.model import JOURNAL_FOLDER
from nnx_migrate.rewrite import writer
from nnx_migrate.rewrite.journal import State, journal_file, load
from nnx_migrate.rewrite.writer import (
    Busy,
    PlannedWrite,
    undo,
    write_copy,
    write_file,
    write_in_place,
)

RUN = ("0.1.0",)


class Killed(BaseException):
    """The process dies here."""


def plan(path: Path, after: bytes) -> PlannedWrite:
    return PlannedWrite(path, path.read_bytes(), after)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(f"old {name}\n")
    return tmp_path


def plans(tree: Path) -> list[PlannedWrite]:
    return [plan(file, b"new " + file.name.encode()) for file in sorted(tree.glob("*.py"))]


def contents(tree: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in tree.iterdir() if file.is_file()}


def test_writing_and_undoing_gives_the_same_tree(tree: Path) -> None:
    before = contents(tree)
    (tree / "a.py").chmod(0o755)
    assert write_in_place(tree, plans(tree), RUN) == ()
    assert contents(tree) == {name: f"new {name}" for name in before}
    assert stat.S_IMODE((tree / "a.py").stat().st_mode) == 0o755
    undone = undo(tree)
    assert len(undone.restored_files) == 3
    assert undone.failures == ()
    assert contents(tree) == before
    assert stat.S_IMODE((tree / "a.py").stat().st_mode) == 0o755
    assert not (tree / JOURNAL_FOLDER).exists()


def test_nothing_to_write_leaves_no_journal(tree: Path) -> None:
    assert write_in_place(tree, [], RUN) == ()
    assert not (tree / JOURNAL_FOLDER).exists()


def test_two_runs_are_undone_together(tree: Path) -> None:
    before = contents(tree)
    write_in_place(tree, plans(tree), RUN)
    write_in_place(tree, [plan(tree / "a.py", b"newer")], RUN)
    assert len(undo(tree).restored_files) == 3
    assert contents(tree) == before


def test_git_does_not_see_the_journal(tree: Path) -> None:
    write_in_place(tree, plans(tree), RUN)
    assert (tree / JOURNAL_FOLDER / ".gitignore").read_text() == "*\n"


def test_a_file_that_changed_is_left_and_the_others_are_written(tree: Path) -> None:
    todo = plans(tree)
    (tree / "b.py").write_text("edited\n")
    (tree / "c.py").unlink()
    failures = write_in_place(tree, todo, RUN)
    assert [failure.path.name for failure in failures] == ["b.py", "c.py"]
    assert "changed during the run" in failures[0].reason
    assert "vanished" in failures[1].reason
    assert contents(tree) == {"a.py": "new a.py", "b.py": "edited\n"}
    journal = load(tree)
    assert journal is not None
    assert journal.state is State.PARTIAL


@pytest.mark.parametrize("target", ["b.py", "."])
def test_a_read_only_file_or_directory_is_left(tree: Path, target: str) -> None:
    sub = tree / "sub"
    sub.mkdir()
    (sub / "b.py").write_text("old")
    todo = [*plans(tree), plan(sub / "b.py", b"new")]
    place = sub / target
    place.chmod(place.stat().st_mode & ~0o222)
    try:
        failures = write_in_place(tree, todo, RUN)
    finally:
        place.chmod(place.stat().st_mode | 0o200)
    assert [failure.path for failure in failures] == [sub / "b.py"]
    assert failures[0].reason.startswith("read-only")
    assert (sub / "b.py").read_text() == "old"
    assert (tree / "a.py").read_text() == "new a.py"


def fail_when_writing(monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    """Let the final step of writing ``name`` fail, as the system would."""
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if Path(target).name == name:
            raise error
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)


def test_a_full_disk_leaves_no_half_written_file(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_when_writing(monkeypatch, "b.py", OSError(errno.ENOSPC, "No space left on device"))
    failures = write_in_place(tree, plans(tree), RUN)
    assert [failure.reason.partition(":")[0] for failure in failures] == ["disk full"]
    assert contents(tree) == {"a.py": "new a.py", "b.py": "old b.py\n", "c.py": "new c.py"}
    monkeypatch.undo()
    assert write_in_place(tree, [plan(tree / "b.py", b"new b.py")], RUN) == ()
    assert len(undo(tree).restored_files) == 3


def test_a_disk_too_full_for_the_journal_changes_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(tree)
    full = OSError(errno.ENOSPC, "No space left on device")
    fail_when_writing(monkeypatch, "journal.json", full)
    with pytest.raises(OSError, match="No space"):
        write_in_place(tree, plans(tree), RUN)
    assert contents(tree) == before
    assert not (tree / JOURNAL_FOLDER).exists()


@pytest.mark.parametrize("last", ["a.py", "b.py", "c.py"])
def test_a_run_killed_at_any_file_is_undone(
    tree: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    before = contents(tree)
    fail_when_writing(monkeypatch, last, Killed())
    with pytest.raises(Killed):
        write_in_place(tree, plans(tree), RUN)
    monkeypatch.undo()
    journal = load(tree)
    assert journal is not None
    assert journal.state is State.WRITING
    (tree / f".{last}.nnx-migrate-new").write_text("half")  # a real kill runs no clean-up
    undone = undo(tree)
    assert len(undone.restored_files) == "abc".index(last[0])
    assert contents(tree) == before


def test_a_second_run_killed_halfway_is_undone_to_the_start(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(tree)
    write_in_place(tree, plans(tree), RUN)
    fail_when_writing(monkeypatch, "b.py", Killed())
    with pytest.raises(Killed):
        write_in_place(tree, [plan(tree / name, b"newer") for name in ("a.py", "b.py")], RUN)
    monkeypatch.undo()
    assert undo(tree).failures == ()
    assert contents(tree) == before


def test_undo_leaves_files_that_were_edited_or_removed_since(tree: Path) -> None:
    write_in_place(tree, plans(tree), RUN)
    (tree / "a.py").write_text("edited\n")
    (tree / "b.py").unlink()
    undone = undo(tree)
    assert [path.name for path in undone.restored_files] == ["c.py"]
    reasons = [failure.reason.partition(" since")[0] for failure in undone.failures]
    assert reasons == ["changed", "removed"]
    assert contents(tree) == {"a.py": "edited\n", "c.py": "old c.py\n"}
    assert journal_file(tree).exists()


def test_undo_without_a_journal_says_so(tree: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no journal"):
        undo(tree)


def test_two_runs_at_once_are_refused(tree: Path) -> None:
    write_in_place(tree, plans(tree), RUN)
    with (tree / JOURNAL_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy, match="another"):
            undo(tree)
    assert (tree / "a.py").read_text() == "new a.py"


def test_a_failed_write_keeps_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report.json"
    file.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_file(file, b"new")
    assert contents(tmp_path) == {"report.json": "old"}


def test_a_copy_is_complete_and_leaves_the_source_alone(tree: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    (source / "sub").mkdir(parents=True)
    (source / ".git").mkdir()
    (source / "a.py").write_text("old")
    (source / "sub" / "data.bin").write_bytes(b"\0\1")
    (source / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (source / "sub" / "run.sh").chmod(0o755)
    (source / ".flake8").write_text("[flake8]\n")
    (source / "link.py").symlink_to("a.py")
    (source / "absolute.py").symlink_to(source / "a.py")
    (source / "sub" / "outside").symlink_to("../../b.py")
    write_copy(source, [source], out, {source / "a.py": b"new"})
    assert (out / "a.py").read_bytes() == b"new"
    assert (source / "a.py").read_text() == "old"
    assert (out / "sub" / "data.bin").read_bytes() == b"\0\1"
    assert os.access(out / "sub" / "run.sh", os.X_OK)
    assert (out / ".flake8").exists()
    assert not (out / ".git").exists()
    assert os.readlink(out / "link.py") == os.readlink(out / "absolute.py") == "a.py"
    assert (out / "sub" / "outside").read_text() == "old b.py\n"


def test_a_copy_into_the_tree_itself_does_not_copy_itself(tree: Path) -> None:
    write_copy(tree, [tree], tree / "out", {})
    assert sorted(path.name for path in (tree / "out").iterdir()) == ["a.py", "b.py", "c.py"]


def test_a_copy_never_overwrites(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not empty"):
        write_copy(tree, [tree], out, {})
    assert contents(out) == {"mine.txt": "mine"}


def test_a_copy_that_fails_leaves_nothing(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer.shutil, "copy2", full)
    with pytest.raises(OSError, match="No space"):
        write_copy(tree, [tree / "a.py"], tmp_path / "out", {})
    assert sorted(contents(tmp_path)) == ["a.py", "b.py", "c.py"]
    assert not (tmp_path / "out").exists()
