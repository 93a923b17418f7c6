"""The benchmark of sizes: what a case needs, and what the report says of it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.sizes.__main__ import FROZEN, main
from benchmarks.sizes.measure import hashes_of, row
from benchmarks.sizes.traced import Needed, needed
from nnx_migrate.evidence.schema import EvidenceError

DENSE = Needed("m.py", "Model", 9, 12, "Dense", "in_features", (5,))
NORM = Needed("m.py", "Model", 10, 12, "LayerNorm", "in_features", (3, 7))


def report(source: str, outcome: str = "rewritten", reason: str | None = None) -> dict:
    size = {"line": 9, "column": 12, "argument": "in_features", "source": source}
    cls = {"name": "m.Model", "path": "m.py", "outcome": outcome, "reason": reason}
    return {"classes": [{**cls, "sizes": [size]}]}


def test_a_needed_size_is_one_line_of_the_committed_list() -> None:
    assert NORM.text == "m.py:10:12 Model LayerNorm.in_features = 3|7"


@pytest.mark.parametrize(
    ("source", "count"),
    [("static", (1, 0, 0)), ("both", (1, 0, 0)), ("recorded", (0, 1, 0)), ("argument", (0, 0, 1))],
)
def test_a_size_counts_where_the_report_has_it_from(source: str, count: tuple[int, ...]) -> None:
    found = row("case", [DENSE], report(source))
    assert (found.static, found.recorded, found.argument) == count
    assert (found.needed, found.open, found.wrong) == (1, 0, 0)


def test_a_size_that_the_report_lacks_is_open() -> None:
    found = row("case", [DENSE, NORM], report("both"))
    assert (found.needed, found.static, found.open) == (2, 1, 1)
    assert found.places == {"open": [NORM.text]}


def test_sizes_of_a_class_that_stays_linen_are_open() -> None:
    assert row("case", [DENSE], report("static", "refused", "no rule knows it")).open == 1


def test_a_size_that_the_traces_contradict_is_wrong() -> None:
    reason = "the code and the recorded calls disagree on in_features of this submodule: 4, not 5"
    found = row("case", [DENSE], report("both", "bridged", reason))
    assert (found.wrong, found.open, found.static) == (1, 0, 0)


def test_every_committed_size_is_a_line_with_its_values() -> None:
    import json

    frozen = json.loads(FROZEN.read_text())
    texts = [text for of_set in frozen.values() for texts in of_set.values() for text in texts]
    assert len(texts) > 60
    assert all(text.partition(" = ")[2].replace("|", "").isdigit() for text in texts)


def test_an_unknown_case_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--set", "rest", "--only", "nothing"])
    assert caught.value.code == 2
    assert "no such case or package" in capsys.readouterr().err


MODEL = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(6)(x)
        for _ in range(2):
            x = nn.MultiHeadDotProductAttention(2)(x, jnp.ones((2, 4, 3)))
        return nn.Dropout(0.5, deterministic=True)(x)


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
        "m.py:9:13 Model Dense.in_features = 5",
        "m.py:11:17 Model MultiHeadDotProductAttention.in_features = 6",
        "m.py:11:17 Model MultiHeadDotProductAttention.in_kv_features = 3",
    ]
    assert needed(file, {}.get) == []


def test_a_file_that_is_no_recording_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError):
        needed(tmp_path / "none.db", {}.get)
