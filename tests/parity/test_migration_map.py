"""Reading a migration map, and the paths it says have moved."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.model import ClassMap, MappedFile, MigrationMap, SizeArgument
from nnx_migrate.parity.instantiation.calls import Call
from nnx_migrate.parity.instantiation.migration_map import BadMap, load_map, path_map_of
from tests.hostile import BYTES, FEW, json_values, mutations, refusal

ENTRY = ClassMap(
    linen="pkg.models.Mlp",
    nnx="pkg.models.Mlp",
    fields={"name_": "label"},
    size_arguments=(
        SizeArgument("in_features", argument="x"),
        SizeArgument("x_shape", argument="x", axis=None, optional=True),
    ),
    attributes={"Dense_0": "Dense_0"},
    rng_streams=("dropout",),
)
FILE = MappedFile("pkg/models.py", ("pkg.models.Mlp",), "a" * 64, "b" * 64)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"schema": 1, "classes": [asdict(ENTRY)]}))
    assert load_map(path) == MigrationMap(classes=(ENTRY,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "map.json: No such file"),
        ("{", r"map.json: not JSON"),
        ("[]", r'expected a migration map with "schema": 1'),
        ('{"schema": 2, "classes": []}', r'expected a migration map with "schema": 1'),
        ('{"schema": 1}', "malformed class entry"),
        ('{"schema": 1, "classes": [{"linen": "a.B"}]}', r"malformed class entry .*'nnx'"),
        (
            '{"schema": 1, "classes": [{"linen": "a", "nnx": "a", "size_arguments": [{"x": 1}]}]}',
            "malformed class entry",
        ),
    ],
)
def test_what_is_no_map_is_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "map.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadMap, match=message):
        load_map(path)


def test_a_device_is_no_map() -> None:
    with pytest.raises(BadMap, match="map /dev/zero: expected a file"):
        load_map(Path("/dev/zero"))


def test_names_that_stay_move_nothing() -> None:
    calls = (Call((), "pkg.models.Mlp", "__call__", ()),)
    assert path_map_of(MigrationMap(classes=(ENTRY,)), calls) == {}


def test_moved_attributes_compose_along_the_scope_path() -> None:
    outer = ClassMap(linen="m.Outer", nnx="m.Outer", attributes={"if": "if_"})
    inner = ClassMap(linen="m.Inner", nnx="m.Inner", attributes={"Dense_0": "proj"})
    calls = (
        Call((), "m.Outer", "__call__", ()),
        Call(("if",), "m.Inner", "__call__", ()),
        Call(("other",), "m.Inner", "__call__", ()),
    )
    assert path_map_of(MigrationMap(classes=(outer, inner)), calls) == {
        "if": "if_",
        "if/Dense_0": "if_/proj",
        "other/Dense_0": "other/proj",
    }


@pytest.mark.parametrize("case", BYTES)
def test_a_hostile_file_is_one_line(tmp_path: Path, case: str) -> None:
    (tmp_path / "map.json").write_bytes(BYTES[case])
    with pytest.raises(BadMap) as caught:
        load_map(tmp_path / "map.json")
    assert "\n" not in str(caught.value)


@FEW
@given(json_values("linen", "nnx", "fields", "size_arguments", "name", "axis", "attributes"))
def test_any_class_entry_is_read_or_refused_with_one_line(tmp_path: Path, entry: object) -> None:
    path = tmp_path / "map.json"
    for classes in (entry, [entry], [{"linen": "a", "nnx": "a", "size_arguments": [entry]}]):
        path.write_text(json.dumps({"schema": 1, "classes": classes}))
        assert "\n" not in refusal(lambda: load_map(path), BadMap)


@pytest.mark.parametrize(
    "change",
    [
        {"linen": 1},
        {"fields": {"a": 1}},
        {"attributes": ["a"]},
        {"rng_streams": "params"},
        {"size_arguments": [{"name": "x", "axis": "last"}]},
        {"size_arguments": [{"name": "x", "axis": True}]},
        {"size_arguments": [{"name": "x", "optional": 1}]},
        {"size_arguments": [[]]},
    ],
)
def test_an_entry_of_the_wrong_kind_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"schema": 1, "classes": [{**asdict(ENTRY), **change}]}))
    with pytest.raises(BadMap, match="malformed class entry"):
        load_map(path)


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../models.py"},
        {"path": "pkg/../../models.py"},
        {"path": "/etc/models.py"},
        {"path": "pkg/a\0.py"},
        {"classes": ["pkg.models.Mlp", "/etc/models.Mlp"]},
        {"classes": ["pkg/../../models.Mlp"]},
        {"classes": ["models\0.Mlp"]},
    ],
)
def test_a_file_that_leads_out_of_the_tree_is_refused(
    tmp_path: Path, change: dict[str, object]
) -> None:
    path = tmp_path / "map.json"
    files = [asdict(FILE), {**asdict(FILE), **change}]
    path.write_text(json.dumps({"schema": 1, "classes": [], "files": files}))
    with pytest.raises(
        BadMap, match="expected files inside of the tree that rewrite read, found '"
    ):
        load_map(path)


def test_a_file_whose_name_has_dots_is_read(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    file = {**asdict(FILE), "path": "a..b/..c.py"}
    path.write_text(json.dumps({"schema": 1, "classes": [], "files": [file]}))
    assert load_map(path).files[0].path == "a..b/..c.py"


VALID = json.dumps({"schema": 1, "classes": [asdict(ENTRY)], "files": [asdict(FILE)]}).encode()


@FEW
@given(st.binary(max_size=40) | mutations(VALID))
def test_any_file_is_a_map_or_refused_with_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "map.json").write_bytes(content)
    assert "\n" not in refusal(lambda: load_map(tmp_path / "map.json"), BadMap)


@FEW
@given(st.sampled_from(("path", "classes", "before", "after")), json_values("classes", "../a"))
def test_any_file_entry_is_read_or_refused_with_one_line(
    tmp_path: Path, name: str, value: object
) -> None:
    path = tmp_path / "map.json"
    for entry in (value, {**asdict(FILE), name: value}):
        path.write_text(json.dumps({"schema": 1, "classes": [], "files": [entry]}))
        assert "\n" not in refusal(lambda: load_map(path), BadMap)
