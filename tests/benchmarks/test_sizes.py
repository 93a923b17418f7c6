"""The benchmark of sizes: what a case needs, and what the report says of it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.corpus.packages import Case
from benchmarks.sizes import frozen
from benchmarks.sizes.__main__ import main
from benchmarks.sizes.measure import Answer, Row, Size, hashes_of, row, sizes_of
from benchmarks.sizes.merging import merged
from benchmarks.sizes.traced import Needed, needed, untraced
from nnx_migrate.evidence.read import load
from nnx_migrate.evidence.schema import EvidenceError
from nnx_migrate.evidence.store import counts

DENSE = Needed("m.py", "Model", 9, 12, "Dense", "in_features", (5,))
NORM = Needed("m.py", "Model", 10, 12, "LayerNorm", "in_features", (3, 7))


def report(
    source: str,
    value: str = "self.width",
    outcome: str = "rewritten",
    reason: str | None = None,
    path: str = "m.py",
) -> dict:
    size = {"path": path, "line": 9, "column": 12, "argument": "in_features"}
    size |= {"source": source, "value": value}
    cls = {"name": "m.Model", "path": "m.py", "outcome": outcome, "reason": reason}
    return {"classes": [{**cls, "sizes": [size], "new_arguments": ["in_features"]}]}


def measured(plain: dict, evidenced: dict, *, built: bool = False) -> Row:
    return row("case", sizes_of([DENSE], plain, evidenced), (), lambda: built)


def test_a_needed_size_is_one_line_of_the_committed_list() -> None:
    assert NORM.entry == "10:12 Model LayerNorm.in_features = 3|7"
    assert NORM.text == f"m.py:{NORM.entry}"


@pytest.mark.parametrize(
    ("alone", "value", "with_evidence", "answer", "told", "checked"),
    [
        ("static", "2 * self.width", "both", Answer.FIELDS, True, True),
        ("static", "in_features + 1", "both", Answer.INPUTS, True, True),
        ("static", "self.width", "static", Answer.FIELDS, True, False),
        ("argument", "Dense_0_in_features", "recorded", Answer.ARGUMENT, True, False),
        ("argument", "Dense_0_in_features", "argument", Answer.ARGUMENT, False, False),
    ],
)
def test_a_size_is_what_the_two_reports_say(
    alone: str, value: str, with_evidence: str, answer: Answer, told: bool, checked: bool
) -> None:
    found = sizes_of([DENSE], report(alone, value), report(with_evidence, value))
    assert found == [Size(DENSE, answer, told, checked)]


def test_a_size_that_the_reports_lack_is_open() -> None:
    found = sizes_of([DENSE, NORM], report("static"), report("both"))
    assert [one.answer for one in found] == [Answer.FIELDS, Answer.OPEN]
    assert [one.told for one in found] == [True, False]


@pytest.mark.parametrize(
    ("alone", "with_evidence", "expected"),
    [
        pytest.param("static", "both", (1, 0, 1), id="an expression that the traces confirm"),
        pytest.param("static", "static", (0, 1, 1), id="one that was compared with nothing"),
        pytest.param("argument", "recorded", (0, 1, 1), id="only the recording tells"),
        pytest.param("argument", "argument", (0, 1, 0), id="nobody tells"),
    ],
)
def test_a_size_of_a_class_that_stays_linen_counts_where_the_traces_confirm_the_code(
    alone: str, with_evidence: str, expected: tuple[int, int, int]
) -> None:
    one, two = (report(kind, outcome="refused") for kind in (alone, with_evidence))
    found = measured(one, two)
    assert (found.static, found.open, found.told) == expected
    assert (found.linen, found.argument, found.unchecked) == (1, 0, 0)


def test_a_size_is_found_by_the_place_of_the_constructor_call_and_its_class() -> None:
    elsewhere = Needed("base.py", "Model", 9, 12, "Dense", "in_features", (5,))
    of_another = Needed("base.py", "Other", 9, 12, "Dense", "in_features", (5,))
    found = sizes_of([elsewhere, of_another], *(report("both", path="base.py") for _ in "12"))
    assert [one.answer for one in found] == [Answer.FIELDS, Answer.OPEN]


def test_a_size_that_the_traces_contradict_is_wrong() -> None:
    reason = "the code and the recorded calls disagree on in_features of this submodule: 4, not 5"
    found = measured(report("static"), report("both", outcome="bridged", reason=reason), built=True)
    assert (found.wrong, found.open, found.static, found.told) == (1, 0, 0, 0)
    assert found.places == {"wrong": [DENSE.text], "not told": [DENSE.text]}


@pytest.mark.parametrize("source", ["static", "argument"])
def test_a_size_that_nothing_was_compared_with_is_unchecked(source: str) -> None:
    found = measured(report(source), report(source))
    assert (found.unchecked, found.places["unchecked"]) == (1, [DENSE.text])


@pytest.mark.parametrize("source", ["static", "argument"])
def test_the_built_model_checks_sizes_that_no_trace_was_compared_with(source: str) -> None:
    found = measured(report(source), report(source), built=True)
    assert (found.unchecked, found.argument) == (0, int(source == "argument"))


def test_the_model_is_only_built_when_that_checks_something() -> None:
    def never() -> bool:
        raise AssertionError("built")

    assert (
        row("case", sizes_of([DENSE], report("static"), report("both")), (), never).unchecked == 0
    )
    assert row("case", sizes_of([NORM], report("static"), report("both")), (), never).open == 1


def test_a_class_that_was_not_traced_is_told() -> None:
    found = row("case", [], ["Model: it raises TypeError"], lambda: False)
    assert (found.needed, found.untraced) == (0, 1)
    assert found.places == {"untraced": ["Model: it raises TypeError"]}


def test_every_committed_size_is_a_line_with_its_values() -> None:
    content = json.loads(frozen.FILE.read_text())
    texts = [
        text
        for of_set in content.values()
        for of_case in of_set.values()
        for entries in of_case.values()
        for text in entries
    ]
    assert len(texts) > 60
    assert all(text.partition(" = ")[2].replace("|", "").isdigit() for text in texts)


def test_the_list_of_a_case_is_kept_beside_those_of_others(tmp_path: Path) -> None:
    file = tmp_path / "needed.json"
    one, two = (Case(name, "rest", "package", tmp_path / "case.py") for name in ("one", "two"))
    frozen.write(one, [DENSE, NORM], file)
    frozen.write(two, [], file)
    assert (
        frozen.of_case(one, file)
        == frozen.listed([DENSE, NORM])
        == {"m.py": [DENSE.entry, NORM.entry]}
    )
    assert frozen.of_case(two, file) == {}
    assert frozen.of_case(Case("one", "other", "package", tmp_path), file) is None


def test_an_unknown_case_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--set", "rest", "--only", "nothing"])
    assert caught.value.code == 2
    assert "no such case or package" in capsys.readouterr().err


MODEL = """\
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(6)(x)
        for _ in range(2):
            x = nn.MultiHeadDotProductAttention(2)(x, jnp.ones((2, 4, 3)))
        carry = jnp.zeros((2, 3)), jnp.zeros((2, 3))
        Scanned(3)(carry, x)
        return nn.Dropout(0.5, deterministic=True)(x)


class Scanned(nn.Module):
    features: int

    @functools.partial(
        nn.transforms.scan, variable_broadcast="params", in_axes=1, out_axes=1,
        split_rngs={"params": False},
    )
    @nn.compact
    def __call__(self, carry, x):
        return nn.LSTMCell(self.features)(carry, x)


Model().init(jax.random.key(0), jnp.ones((2, 4, 5)))
"""


@pytest.mark.slow
def test_needed_sizes_are_those_that_the_layers_were_given(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODEL)
    file = tmp_path / "sizes.db"
    command = [sys.executable, "-m", "nnx_migrate", "record", "-o", str(file), "--"]
    subprocess.run([*command, sys.executable, str(tmp_path / "m.py")], check=True)
    digest = hashlib.sha256(MODEL.encode()).hexdigest()
    assert hashes_of(tmp_path) == {digest: "m.py"}
    assert [one.text for one in needed(file, hashes_of(tmp_path).get)] == [
        "m.py:11:13 Model Dense.in_features = 5",
        "m.py:13:17 Model MultiHeadDotProductAttention.in_features = 6",
        "m.py:13:17 Model MultiHeadDotProductAttention.in_kv_features = 3",
    ]
    assert needed(file, {}.get) == []
    assert untraced(file) == ["Scanned: a decorator stands between __call__ and its callers"]
    both = merged([file, file], tmp_path / "both.db")
    assert counts(both) == counts(file)
    assert [one.sizes for one in load(both).classes] == [one.sizes for one in load(file).classes]


def test_a_file_that_is_no_recording_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError):
        needed(tmp_path / "none.db", {}.get)
