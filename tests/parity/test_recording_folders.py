"""Folders that recorded modules are imported from."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePath

import pytest

from nnx_migrate.evidence.read import Evidence
from nnx_migrate.parity.recordings.folders import folders_of, with_folders

TEXT = "x = 1\n"


def evidence(module: str, name: str, text: str = TEXT) -> Evidence:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Evidence(Path("sizes.db"), (), {digest: module}, {digest: name})


def tree(root: Path, *files: str) -> Path:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(TEXT)
    return root


@pytest.mark.parametrize(
    ("file", "module", "folder"),
    [
        ("tests/nets/test_x.py", "test_x", "tests/nets"),
        ("lib/pkg/models.py", "pkg.models", "lib"),
        ("lib/pkg/__init__.py", "pkg", "lib"),
    ],
)
def test_the_folder_of_a_module_that_is_not_found_otherwise(
    tmp_path: Path, file: str, module: str, folder: str
) -> None:
    found = folders_of(evidence(module, PurePath(file).name), (tree(tmp_path, file),))
    assert found == (PurePath(folder),)


def test_a_package_that_an_entry_links_to_is_searched(tmp_path: Path) -> None:
    package = tree(tmp_path / "package", "__init__.py", "test/test_x.py")
    (tmp_path / "link").mkdir()
    (tmp_path / "link/package").symlink_to(package, target_is_directory=True)
    found = folders_of(evidence("test_x", "test_x.py"), (tmp_path / "link",))
    assert found == (PurePath("package/test"),)


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("test_x.py", "test_x"),  # an entry reaches it
        ("tests/test_x.py", "other.test_x"),  # another path
        ("tests/test_y.py", "test_x"),  # another file
        (".hidden/test_x.py", "test_x"),
        ("venv/test_x.py", "test_x"),
    ],
)
def test_no_folder_for_what_is_found_or_is_not_there(
    tmp_path: Path, file: str, module: str
) -> None:
    assert folders_of(evidence(module, "test_x.py"), (tree(tmp_path, file),)) == ()


def test_a_file_that_was_edited_since_is_not_the_recorded_one(tmp_path: Path) -> None:
    found = folders_of(evidence("test_x", "test_x.py", "x = 2\n"), (tree(tmp_path, "a/test_x.py"),))
    assert found == ()


def test_a_tree_gets_the_folders_that_it_has(tmp_path: Path) -> None:
    tree(tmp_path, "tests/test_x.py")
    entries = with_folders((tmp_path,), (PurePath("tests"), PurePath("missing")))
    assert entries == (tmp_path, tmp_path / "tests")
