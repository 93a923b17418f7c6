"""The evidence file: merging, versions, damage."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.evidence import store
from nnx_migrate.evidence.observations import Call, ClassKey, Instance, Place, SourceFile, Trace
from nnx_migrate.evidence.read import load
from nnx_migrate.evidence.schema import EvidenceError, create
from tests.hostile import BYTES, DEEP, FEW, json_values, mutations, refusal

FILE = SourceFile("aa" * 32, "models", "models.py")
KEY = ClassKey(FILE.hash, "models", "Net")
SITE = Place(FILE.hash, 7, 8, 7, 20)


def instance(features: int, width: int) -> Instance:
    """A class that builds one layer of its own input, traced as recorded and twice as wide."""
    fields = {"$": "module", "module": "models", "name": "Net", "fields": {"features": features}}

    def traced(changes: dict[str, int], size: int) -> Trace:
        shapes = (("inputs", (2, size)),)
        return Trace(changes, (Call(SITE, 0, "flax.Dense", "Dense_0", "", "__call__", shapes),))

    return Instance(
        KEY,
        "__call__",
        fields,
        {"x": {"$": "array", "shape": [2, width], "dtype": "float32"}},
        traces=(
            traced({}, width),
            traced({"x.shape[-1]": 2 * width}, 2 * width),
            traced({"x.shape[-1]": 3 * width}, 3 * width),
            traced({"self.features": 2 * features}, width),
            traced({"x.shape[-2]": 4}, width),
        ),
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sizes.db"
    create(path)
    return path


def test_what_is_stored_is_read_back_with_the_solved_size(file: Path) -> None:
    store.add(file, [FILE], [instance(8, 6)])
    (cls,) = load(file).classes
    assert cls.key == KEY
    size = cls.sizes[(SITE, "", "__call__", "inputs", -1)]
    assert size.expression == "x.shape[-1]"
    assert (cls.trace_count, cls.seen_by(SITE)) == (1, 1)


def test_a_second_run_with_the_same_calls_adds_nothing(file: Path) -> None:
    store.add(file, [FILE], [instance(8, 6)])
    before = store.counts(file)
    store.add(file, [FILE], [instance(8, 6)])
    assert store.counts(file) == before == {"classes": 1, "instances": 1, "traces": 5}


def test_a_second_run_with_other_calls_is_solved_together_with_the_first(file: Path) -> None:
    store.add(file, [FILE], [instance(8, 6)])
    odd = instance(8, 5)
    shapes = (("inputs", (2, 99)),)
    call = Call(SITE, 0, "flax.Dense", "Dense_0", "", "__call__", shapes)
    store.add(file, [FILE], [replace(odd, traces=(Trace({}, (call,)),))])
    (cls,) = load(file).classes
    assert cls.sizes[(SITE, "", "__call__", "inputs", -1)].expression is None
    assert len(cls.instances) == 2


def test_processes_that_write_at_once_all_get_in(file: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.evidence.test_store import *;"
        "store.add(Path(sys.argv[1]), [FILE], [instance(8, int(sys.argv[2]))])"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(file), str(width)])
        for width in range(4, 8)
    ]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert store.counts(file)["instances"] == 4


def test_finishing_leaves_one_file(file: Path) -> None:
    store.add(file, [FILE], [instance(8, 6)])
    store.finish(file)
    assert [path.name for path in file.parent.iterdir()] == ["sizes.db"]


def test_a_write_that_fails_leaves_the_file_as_it_was(file: Path) -> None:
    store.add(file, [FILE], [instance(8, 6)])
    with pytest.raises(TypeError):
        store.add(file, [FILE], [instance(8, 7), replace(instance(8, 9), rngs=(object(),))])  # type: ignore[arg-type]
    assert store.counts(file)["instances"] == 1


def test_a_file_of_another_version_is_refused(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE meta SET value = '99'")
    with pytest.raises(EvidenceError, match="expected evidence of version 1, found 99"):
        load(file)
    with pytest.raises(EvidenceError, match="record it again"):
        create(file)


@pytest.mark.parametrize("content", [b"not a database at all, but long enough" * 40, b"PK\x03\x04"])
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(EvidenceError, match="expected an evidence file"):
        create(path)
    with pytest.raises(EvidenceError, match="expected an evidence file"):
        load(path)
    assert path.read_bytes() == content


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="nnx-migrate record -o"):
        load(tmp_path / "sizes.db")


def test_evidence_without_any_call_is_refused(file: Path) -> None:
    with pytest.raises(EvidenceError, match="no Linen call was recorded"):
        load(file)


@pytest.mark.parametrize("case", BYTES)
def test_a_hostile_file_is_one_line(tmp_path: Path, case: str) -> None:
    path = tmp_path / "sizes.db"
    path.write_bytes(BYTES[case])
    with pytest.raises(EvidenceError, match="expected an evidence file") as caught:
        load(path)
    assert "\n" not in str(caught.value)


COLUMNS = (
    *(f"instances.{name}" for name in ("fields", "inputs", "rngs", "collections", "mutable")),
    *("surroundings.passed", "surroundings.arguments", "traces.changes", "calls.shapes"),
    *("sizes.alternatives",),
)


def reason(file: Path, column: str, text: str) -> str:
    """Why a file with this text in one row is refused; nothing when it is read."""
    table, _, name = column.partition(".")
    damaged = shutil.copy(file, file.with_name("damaged.db"))
    with closing(sqlite3.connect(damaged)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        first = f"(SELECT min(rowid) FROM {table})"
        connection.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = {first}", (text,))
    return refusal(lambda: load(damaged), EvidenceError)


@pytest.mark.parametrize(
    "text", ["", "{", "5", '"a"', DEEP, '{"$": {"$": "list"}}', '[{"$": "odd"}]']
)
def test_damaged_json_is_one_line(file: Path, text: str) -> None:
    store.add(file, [FILE], [instance(8, 6)])
    for column in COLUMNS:
        line = reason(file, column, text)
        fine = column == "instances.fields" and text == "5"
        assert (": damaged: " in line) is not fine
        assert "\n" not in line
    assert load(file).classes


@FEW
@given(json_values("$", "list", "dict", "array", "module", "name", "items", "fields", "shape"))
def test_any_json_is_read_or_refused_with_one_line(tmp_path: Path, value: object) -> None:
    path = tmp_path / "sizes.db"
    if not path.exists():
        create(path)
        store.add(path, [FILE], [instance(8, 6)])
    for column in COLUMNS:
        assert "\n" not in reason(path, column, json.dumps(value))


@FEW
@given(data=st.data())
def test_any_change_of_bytes_is_read_or_refused_with_one_line(
    tmp_path: Path, data: st.DataObject
) -> None:
    path, damaged = tmp_path / "sizes.db", tmp_path / "damaged.db"
    if not path.exists():
        create(path)
        store.add(path, [FILE], [instance(8, 6)])
    damaged.write_bytes(data.draw(mutations(path.read_bytes())))
    assert "\n" not in refusal(lambda: load(damaged), EvidenceError)
