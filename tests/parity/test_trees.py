"""Where each side's packages come from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nnx_migrate.parity.files.trees import BadTree, open_trees


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository whose first revision has ``pkg`` with version 1, whose work tree has 2."""
    root = tmp_path / "repo"
    (root / "src" / "pkg").mkdir(parents=True)
    (root / "cases").mkdir()
    (root / "cases" / "case.py").write_text("")
    module = root / "src" / "pkg" / "version.py"
    module.write_text("VERSION = 1\n")
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True)
    module.write_text("VERSION = 2\n")
    return root


def test_a_directory_contributes_itself_and_its_src(tmp_path: Path) -> None:
    (tmp_path / "old" / "src").mkdir(parents=True)
    (tmp_path / "new").mkdir()
    case = tmp_path / "case.py"
    with open_trees(case, str(tmp_path / "old"), str(tmp_path / "new")) as trees:
        assert trees.before == (tmp_path / "old", tmp_path / "old" / "src", tmp_path)
        assert trees.after == (tmp_path / "new", tmp_path)


def test_without_trees_both_sides_see_the_directory_of_the_case(tmp_path: Path) -> None:
    with open_trees(tmp_path / "case.py", None, None) as trees:
        assert trees.before == trees.after == (tmp_path,)


def test_the_directory_of_the_case_is_left_out_where_it_is_the_other_sides_code(
    tmp_path: Path,
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    with open_trees(
        tmp_path / "new" / "case.py", str(tmp_path / "old"), str(tmp_path / "new")
    ) as t:
        assert t.before == (tmp_path / "old",)
        assert t.after == (tmp_path / "new",)


def test_a_revision_is_exported_and_removed(repository: Path) -> None:
    case = repository / "cases" / "case.py"
    with open_trees(case, "HEAD", None) as trees:
        exported = trees.before[0]
        assert (trees.before[1] / "pkg" / "version.py").read_text() == "VERSION = 1\n"
        assert (trees.after[1] / "pkg" / "version.py").read_text() == "VERSION = 2\n"
        assert not any(path.is_relative_to(repository) for path in trees.before)
    assert not exported.exists()


def test_a_revision_stands_for_the_same_directory_as_the_other_tree(repository: Path) -> None:
    after = repository / "src"
    with open_trees(repository / "cases" / "case.py", "HEAD", str(after)) as trees:
        assert (trees.before[0] / "pkg" / "version.py").read_text() == "VERSION = 1\n"
        assert trees.after[0] == after


def test_both_sides_may_be_revisions(repository: Path) -> None:
    with open_trees(repository / "cases" / "case.py", "HEAD", "HEAD") as trees:
        assert trees.before[0] != trees.after[0]
        assert (trees.after[1] / "pkg" / "version.py").read_text() == "VERSION = 1\n"


def test_a_tree_that_is_a_package_is_importable_by_the_before_name(tmp_path: Path) -> None:
    for name in ("models", "migrated"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"WHO = {name!r}\n")
    case = tmp_path / "case.py"
    with open_trees(case, str(tmp_path / "models"), str(tmp_path / "migrated")) as trees:
        assert "migrated" in (trees.after[0] / "models" / "__init__.py").read_text()
        assert "models" in (trees.before[0] / "models" / "__init__.py").read_text()


def test_a_file_is_no_tree(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("")
    with (
        pytest.raises(BadTree, match="expected a directory or a git revision, found a file"),
        open_trees(tmp_path / "case.py", str(tmp_path / "old.py"), None),
    ):
        pass


def test_an_unknown_revision_is_refused(repository: Path) -> None:
    with (
        pytest.raises(BadTree, match="before=no-such: neither a directory nor a git revision"),
        open_trees(repository / "cases" / "case.py", "no-such", None),
    ):
        pass


def test_a_revision_outside_any_repository_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(BadTree, match="in no git repository"),
        open_trees(tmp_path / "case.py", "HEAD", None),
    ):
        pass


def test_an_option_is_not_taken_for_a_revision(repository: Path) -> None:
    with (
        pytest.raises(BadTree, match="neither a directory nor a git revision"),
        open_trees(repository / "cases" / "case.py", "--output=x", None),
    ):
        pass
