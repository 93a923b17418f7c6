"""A migration map is held against the trees that are compared."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nnx_migrate.cli import main
from nnx_migrate.digests import text_digest
from nnx_migrate.model import ClassMap, MappedFile, MigrationMap
from nnx_migrate.parity.files.trees import open_trees, roots_of
from nnx_migrate.parity.instantiation.map_files import digests, require_own
from nnx_migrate.parity.instantiation.migration_map import BadMap

OLD, NEW, EDITED = (text_digest(text) for text in (b"old", b"new", b"edited"))
MAP = MigrationMap(
    (ClassMap("pkg.a.A", "pkg.a.A"), ClassMap("pkg.b.B", "pkg.b.B")),
    (
        MappedFile("pkg/a.py", ("pkg.a.A",), OLD, NEW),
        MappedFile("pkg/b.py", ("pkg.b.B",), OLD, NEW),
    ),
)
MODEL = """\
import flax.linen as nn


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
"""
CASE = """\
import numpy as np
from model import Model


def linen():
    return Model()


def inputs():
    return (np.ones((2, 4), np.float32),)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"pkg/a.py": OLD}, {"pkg/a.py": NEW}),
        ({"pkg/a.py": OLD}, {"pkg/a.py": EDITED}),
        ({"pkg/a.py": EDITED}, {"pkg/a.py": NEW}),
        ({"pkg/a.py": OLD, "pkg/b.py": EDITED}, {"pkg/b.py": EDITED}),  # B is not compared
    ],
)
def test_a_map_is_known_by_what_was_read_or_written(
    before: dict[str, str], after: dict[str, str]
) -> None:
    require_own(MAP, ["pkg.a.A", "flax.linen.linear.Dense"], before, after, Path("map.json"))


@pytest.mark.parametrize(
    ("used", "before", "after", "line"),
    [
        ("pkg.a.A", {"pkg/a.py": EDITED}, {"pkg/a.py": EDITED}, "found one of another pkg/a.py"),
        ("pkg.A", {"pkg/a.py": NEW}, {"pkg/a.py": OLD}, "found one of another pkg/a.py"),
        ("pkg.a.A", {"pkg/b.py": OLD}, {"pkg/b.py": NEW}, "found one of pkg/a.py, which neither"),
        ("other.C", {}, {}, "found one of pkg/a.py, which neither"),
        ("other.C", {"pkg/b.py": EDITED}, {}, "found one of another pkg/b.py"),
    ],
)
def test_a_map_of_another_tree_is_refused(
    used: str, before: dict[str, str], after: dict[str, str], line: str
) -> None:
    with pytest.raises(BadMap, match=f"map map.json: expected the map of these trees, {line}"):
        require_own(MAP, [used], before, after, Path("map.json"))


def test_files_are_found_by_their_classes_and_line_ends_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "src" / "pkg" / "a.py").write_bytes(b"x = 1\r\n")
    found = digests(MAP, roots_of([tmp_path / "elsewhere", tmp_path / "src"]), Path("map.json"))
    assert found == {"pkg/a.py": text_digest(b"x = 1\n")}


def test_a_link_within_a_tree_is_followed_and_one_out_of_it_refused(tmp_path: Path) -> None:
    tree, elsewhere = tmp_path / "tree", tmp_path / "elsewhere"
    for folder in (tree / "pkg", elsewhere):
        folder.mkdir(parents=True)
        (folder / "real.py").write_text("x = 1\n")
    link = tree / "pkg" / "a.py"
    link.symlink_to("real.py")
    assert digests(MAP, {tree: tree}, Path("map.json")) == {"pkg/a.py": text_digest(b"x = 1\n")}
    link.unlink()
    link.symlink_to(elsewhere / "real.py")
    with pytest.raises(
        BadMap, match=r"map map.json: .* found 'pkg/a.py', a link that leads out of"
    ):
        digests(MAP, {tree: tree}, Path("map.json"))


def test_a_folder_that_is_a_link_out_of_the_tree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.py").write_text("x = 1\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "pkg").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadMap, match=r"found 'pkg/a.py', a link that leads out of it"):
        digests(MAP, roots_of([tmp_path / "tree"]), Path("map.json"))


def test_a_tree_that_is_a_package_is_no_link_out_of_itself(tmp_path: Path) -> None:
    for name in ("pkg", "migrated"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "a.py").write_text(f"x = {name!r}\n")
    trees = tmp_path / "pkg", tmp_path / "migrated"
    one = MigrationMap((), MAP.files[:1])
    with open_trees(tmp_path / "case.py", *map(str, trees)) as opened:
        for entries, tree in zip((opened.before, opened.after), trees, strict=True):
            expected = {"pkg/a.py": text_digest((tree / "a.py").read_bytes())}
            assert digests(one, roots_of(entries), Path("map.json")) == expected


@pytest.fixture
def case(tmp_path: Path) -> list[str]:
    """The words of ``parity`` for a migrated tree."""
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "model.py").write_text(MODEL)
    (tmp_path / "case.py").write_text(CASE)
    words = ["--output", str(tmp_path / "after"), "--map", str(tmp_path / "map.json")]
    assert main(["rewrite", str(tmp_path / "before"), *words]) == 0
    given = ("case.py", "before", "after")
    return ["parity", *(f"{name.partition('.')[0]}={tmp_path / name}" for name in given)]


def test_the_map_of_the_run_is_used_and_one_of_another_tree_is_refused(
    case: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "map.json"
    assert main([*case, f"map={file}"]) == 0
    assert "hashes" not in capsys.readouterr().out
    content = json.loads(file.read_text())
    content["files"][0] |= {"before": EDITED, "after": EDITED}
    (tmp_path / "other.json").write_text(json.dumps(content))
    assert main([*case, f"map={tmp_path / 'other.json'}"]) == 2
    line = r"parity: after side: map .*other.json: expected the map of these trees, .*\n"
    assert re.fullmatch(line, capsys.readouterr().err)


def test_parity_refuses_a_file_of_the_map_that_is_a_link_out_of_the_tree(
    case: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "before" / "model.py"
    (tmp_path / "elsewhere").mkdir()
    file.rename(tmp_path / "elsewhere" / "model.py")
    file.symlink_to(tmp_path / "elsewhere" / "model.py")
    assert main([*case, f"map={tmp_path / 'map.json'}"]) == 2
    line = r"parity: before side: map .*map.json: expected files inside of the tree, found 'model.py', .*\n"
    assert re.fullmatch(line, capsys.readouterr().err)


BAD = {
    "no map": ({"schema": 1}, "malformed class entry"),
    "a path out of the tree": (
        {
            "schema": 1,
            "classes": [],
            "files": [{"path": "../a.py", "classes": [], "before": "", "after": ""}],
        },
        "expected files inside of the tree that rewrite read, found '../a.py'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_map_that_cannot_be_used_is_refused_before_anything_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, line = BAD[name]
    (tmp_path / "map.json").write_text(json.dumps(content))
    (tmp_path / "case.py").write_text("raise ValueError('it ran')\n")
    assert main(["parity", f"case={tmp_path / 'case.py'}", f"map={tmp_path / 'map.json'}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"parity: map {tmp_path / 'map.json'}: {line}")
    assert said.count("\n") == 1


def test_a_map_without_hashes_is_said_to_be_unchecked(
    case: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "map.json"
    content = json.loads(file.read_text())
    del content["files"]
    file.write_text(json.dumps(content))
    assert main([*case, f"map={file}"]) == 0
    assert "map: it has no hashes of files" in capsys.readouterr().out
