"""Reading keeps every byte; what cannot be read is a value that says why."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.source.discovery import discover, project_files
from nnx_migrate.source.files import ReadFailure, SourceText, decode, find_root, read
from tests.hostile import mutations

FILE = Path("model.py")

READABLE = {
    "plain": (b"a = 1\n", "utf-8", False),
    "no final newline": (b"a = 1", "utf-8", False),
    "empty": (b"", "utf-8", False),
    "CRLF": (b"a = 1\r\nb = 2\r\n", "utf-8", False),
    "CR": (b"a = 1\rb = 2\r", "utf-8", False),
    "CR with the word coding later": (b"# one\ra = 1\r# coding: latin-1\r", "utf-8", False),
    "form feed": (b"a = 1\n\x0c\nb = 2\n", "utf-8", False),
    "byte order mark": (codecs.BOM_UTF8 + b"a = 1\n", "utf-8", True),
    "latin-1 cookie": (b"# -*- coding: latin-1 -*-\na = '\xe9'\n", "iso-8859-1", False),
    "cookie on line two": (b"#!python\n# coding: cp1252\na = '\x80'\n", "cp1252", False),
    "utf-8 text": ("a = 'é…'\n".encode(), "utf-8", False),
}

UNREADABLE = {
    "binary": (b"a\0b", "NUL byte at offset 1"),
    "not utf-8": (b"a = 1\nb = '\xe9'\n", "byte 0xe9 on line 2 is not UTF-8"),
    "unknown coding": (b"# coding: nonsense\n", "unknown encoding"),
    "coding against the mark": (codecs.BOM_UTF8 + b"# coding: latin-1\n", "undecodable"),
    "utf-16": ("a = 1".encode("utf-16"), "binary"),
    "no round trip": (b"# coding: utf-7\na = '+AGE-'\n", "does not encode back"),
}


@pytest.mark.parametrize("case", READABLE)
def test_what_is_read_encodes_back_to_the_same_bytes(case: str) -> None:
    raw, encoding, bom = READABLE[case]
    source = decode(FILE, raw)
    assert isinstance(source, SourceText)
    assert (source.encoding, source.bom) == (encoding, bom)
    assert source.encode(source.text) == raw
    assert not source.text.startswith("\ufeff")


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_decoded_is_a_one_line_reason(case: str) -> None:
    raw, reason = UNREADABLE[case]
    failure = decode(FILE, raw)
    assert isinstance(failure, ReadFailure)
    assert reason in failure.reason
    assert "\n" not in failure.reason


@given(st.binary(max_size=60) | mutations(*(raw for raw, *_ in READABLE.values())))
def test_any_bytes_either_round_trip_or_fail_with_a_reason(raw: bytes) -> None:
    source = decode(FILE, raw)
    if isinstance(source, SourceText):
        assert source.encode(source.text) == raw
    else:
        assert source.reason


def test_a_new_character_outside_the_encoding_is_an_error() -> None:
    source = decode(FILE, b"# coding: ascii\n")
    assert isinstance(source, SourceText)
    with pytest.raises(UnicodeEncodeError):
        source.encode("é")


def test_a_vanished_file_and_a_directory_are_failures(tmp_path: Path) -> None:
    vanished = read(tmp_path / "gone.py")
    directory = read(tmp_path)
    assert isinstance(vanished, ReadFailure)
    assert vanished.reason == "no such file or directory"
    assert isinstance(directory, ReadFailure)
    assert directory.reason.startswith("unreadable")


def make(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a = 1\n")


def names(
    tmp_path: Path, *, select: tuple[str, ...] = (), exclude: tuple[str, ...] = ()
) -> list[str]:
    found = discover([tmp_path], select, exclude)
    return [file.relative_to(tmp_path).as_posix() for file in found.files]


def test_python_files_are_found_sorted_and_caches_are_skipped(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/c.py", "a/d.txt", ".hidden/x.py", "venv/x.py", "__pycache__/x.py")
    make(tmp_path, "node_modules/x.py", ".nnx-migrate/x.py", "env/pyvenv.cfg", "env/x.py")
    assert names(tmp_path) == ["a/c.py", "b.py"]


@pytest.mark.parametrize(
    ("select", "exclude", "expected"),
    [
        (("a/*",), (), ["a/b/d.py", "a/c.py"]),
        (("a",), (), ["a/b/d.py", "a/c.py"]),
        (("a/",), (), ["a/b/d.py", "a/c.py"]),
        (("*.py",), ("a/b/*",), ["a/c.py", "e.py"]),
        (("pkg.Model",), (), ["a/b/d.py", "a/c.py", "e.py"]),
        ((), ("e.py",), ["a/b/d.py", "a/c.py"]),
        ((), ("b",), ["a/c.py", "e.py"]),
        ((), ("b/",), ["a/c.py", "e.py"]),
        ((), ("d.py",), ["a/c.py", "e.py"]),
        (("d.py",), (), ["a/b/d.py"]),
        (("none/*",), (), []),
    ],
)
def test_path_globs_choose_files(
    tmp_path: Path, select: tuple[str, ...], exclude: tuple[str, ...], expected: list[str]
) -> None:
    make(tmp_path, "a/c.py", "a/b/d.py", "e.py")
    assert names(tmp_path, select=select, exclude=exclude) == expected


def test_globs_that_match_no_path_speak_of_classes(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    found = discover([tmp_path], ["pkg.Model", "a.py"], ["pkg.*", "*/b.py"])
    assert found.class_select == ("pkg.Model",)
    assert found.class_exclude == ("pkg.*",)


def test_files_that_are_not_selected_are_left_out_not_lost(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "b.py")
    found = discover([tmp_path], ["a.py"])
    assert [file.name for file in found.left_out] == ["b.py"]


def test_links_are_judged_and_not_followed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    make(tree, "a.py", "sub/b.py")
    make(tmp_path, "outside/c.py")
    (tree / "out").symlink_to(tmp_path / "outside")
    (tree / "out.py").symlink_to(tmp_path / "outside" / "c.py")
    (tree / "sub" / "up").symlink_to(tree)
    (tree / "self.py").symlink_to(tree / "self.py")
    (tree / "gone.py").symlink_to(tree / "nothing.py")
    (tree / "same.py").symlink_to("a.py")
    (tree / "readme").symlink_to("/etc/hostname")
    found = discover([tree])
    assert [file.name for file in found.files] == ["a.py", "b.py"]
    reasons = {failure.path.name: failure.reason for failure in found.failures}
    assert set(reasons) == {"out", "out.py", "up", "self.py", "gone.py"}
    assert reasons["out"].startswith("symlink out of the tree")
    assert reasons["out.py"].startswith("symlink out of the tree")
    assert reasons["up"] == reasons["self.py"] == "symlink loop, not followed"
    assert reasons["gone.py"] == "broken symlink"


def test_a_missing_path_is_a_failure_and_the_others_are_found(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    found = discover([tmp_path / "a.py", tmp_path / "gone"])
    assert [file.name for file in found.files] == ["a.py"]
    assert [failure.reason for failure in found.failures] == ["no such file or directory"]
    assert found.base == tmp_path


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.py", "", None),
        ("script", "#!/usr/bin/env python3\n", None),
        ("link", "", None),
        ("a.ipynb", "{}", "expected a Python file, found a notebook: convert it"),
        ("a.pyi", "", "expected a Python file (*.py"),
        ("README", "import flax", "expected a Python file (*.py"),
        ("run", "#!/bin/sh\n", "expected a Python file (*.py"),
    ],
)
def test_a_named_file_that_is_no_python_is_a_failure(
    tmp_path: Path, name: str, text: str, reason: str | None
) -> None:
    if name == "link":
        make(tmp_path, "real.py")
        (tmp_path / name).symlink_to("real.py")
    else:
        (tmp_path / name).write_text(text)
    found = discover([tmp_path / name])
    assert len(found.files) == (reason is None)
    assert [failure.reason[: len(reason or "")] for failure in found.failures] == (
        [] if reason is None else [reason]
    )


def test_the_base_is_what_all_paths_share(tmp_path: Path) -> None:
    make(tmp_path, "a/b/c.py", "a/d.py")
    assert discover([tmp_path / "a" / "b", tmp_path / "a" / "d.py"]).base == tmp_path / "a"


def test_the_root_is_the_nearest_marker_above(tmp_path: Path) -> None:
    make(tmp_path, "pyproject.toml", "src/pkg/__init__.py", "src/pkg/a.py")
    assert find_root(tmp_path / "src" / "pkg" / "a.py") == tmp_path
    assert find_root(tmp_path / "src", tmp_path / "src") == tmp_path / "src"
    make(tmp_path, "src/.git")
    assert find_root(tmp_path / "src" / "pkg") == tmp_path / "src"


def test_without_a_marker_the_root_holds_the_outermost_package(tmp_path: Path) -> None:
    make(tmp_path, "pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/a.py", "other/b.py")
    root = find_root(tmp_path / "pkg" / "sub")
    assert root == tmp_path
    around = project_files(root, False, discover([tmp_path / "pkg" / "sub"]))
    assert {file.relative_to(tmp_path).parts[0] for file in around} == {"pkg"}
