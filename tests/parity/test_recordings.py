"""Recorded modules as parity cases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnx_migrate.cli import main
from nnx_migrate.parity.command import run
from nnx_migrate.parity.recordings.modules import is_evidence
from nnx_migrate.parity.recordings.replay import CannotReplay, Replay

ROOT = Path(__file__).parents[2]

MODELS = """\
from typing import Any

import flax.linen as nn


class Block(nn.Module):
    features: int
    activation: Any = nn.relu

    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(self.features)(x))
        return nn.Dropout(0.5, deterministic=not train)(self.activation(x))


class Model(nn.Module):
    token: str = ''

    @nn.compact
    def __call__(self, ids, train: bool = False):
        x = nn.Embed(11, 6)(ids)
        return nn.Dense(3)(Block(8)(x, train=train))
"""

# In a folder that only a test runner puts on sys.path.
NETS = """\
import flax.linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(x)
"""

PROGRAM = """\
import os
import sys
import jax, jax.numpy as jnp
from models import Block, Model

sys.path.insert(0, 'tests/nets')
from helper_nets import Net

Net().init(jax.random.key(0), jnp.ones((2, 4)))

ids = jnp.ones((2, 5), jnp.int32)
Model().init(jax.random.key(0), ids)
Model(token=os.environ['TOKEN']).init(jax.random.key(0), jnp.ones((2, 3), jnp.int32))
keys = {'params': jax.random.key(0), 'dropout': jax.random.key(1)}
Block(4, activation=jax.nn.gelu).init(keys, jnp.ones((2, 7)), train=True)
"""


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A recorded project and what ``rewrite --evidence`` makes of it."""
    folder = tmp_path_factory.mktemp("recorded")
    before, after = folder / "before", folder / "after"
    before.mkdir()
    (before / "pyproject.toml").touch()
    (before / "models.py").write_text(MODELS)
    (before / "tests/nets").mkdir(parents=True)
    (before / "tests/nets/helper_nets.py").write_text(NETS)
    (folder / "main.py").write_text(PROGRAM)
    evidence = str(folder / "sizes.db")
    words = ["record", "-o", evidence, "--", sys.executable, "../main.py"]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{before}",
        "JAX_PLATFORMS": "cpu",
        "TOKEN": "xyzzy-1",
    }
    command = [sys.executable, "-m", "nnx_migrate", *words]
    subprocess.run(command, cwd=before, env=environment, check=True, capture_output=True)
    words = ["rewrite", str(before), "--output", str(after), "--evidence", evidence]
    assert main([*words, "--map", str(folder / "map.json")]) == 0
    return before, after


def compare(trees: tuple[Path, Path], *more: str) -> tuple[int, tuple[str, ...]]:
    before, after = trees
    folder = before.parent
    words = [f"case={folder}/sizes.db", f"before={before}", f"after={after}"]
    outcome = run([*words, f"map={folder}/map.json", *more])
    return outcome.exit_code, outcome.lines


def test_every_recorded_module_gets_a_verdict_or_a_reason(trees: tuple[Path, Path]) -> None:
    report = trees[0].parent / "report.json"
    code, lines = compare(trees, f"report={report}")
    verdicts = {tuple(line.split()[:2]) for line in lines[:-1]}
    assert code == 0
    assert verdicts == {
        ("helper_nets.Net(x[2,4])", "identical"),
        ("models.Model(ids[2,5])", "identical"),
        ("models.Model(ids[2,3])", "not"),
        ("models.Block(x[2,5,6])", "identical"),
        ("models.Block(x[2,3,6])", "identical"),
        ("models.Block(x[2,7])", "identical"),
    }
    assert "it holds a string that is not in the source code" in "\n".join(lines)
    assert lines[-1].endswith("6 recorded modules: 5 identical, 1 not compared")
    content = json.loads(report.read_text())
    assert (content["ok"], len(content["modules"])) == (True, 6)
    assert sum(one["compared"] for one in content["modules"]) == 5


def test_a_migrated_module_that_differs_is_found(trees: tuple[Path, Path], tmp_path: Path) -> None:
    models = (trees[1] / "models.py").read_text()
    wrong = models.replace("self.activation(x)", "self.activation(x) * 2")
    assert wrong != models
    (tmp_path / "models.py").write_text(wrong)
    code, lines = compare((trees[0], tmp_path), "class=Block")
    assert code == 1
    assert all("different" in line for line in lines)


def test_one_class_can_be_chosen(trees: tuple[Path, Path]) -> None:
    code, lines = compare(trees, "class=Nothing*")
    assert (code, len(lines)) == (2, 1)
    assert "no recorded class matches Nothing*" in lines[0]


def test_when_every_class_stays_linen_nothing_was_compared(
    trees: tuple[Path, Path], tmp_path: Path
) -> None:
    empty = tmp_path / "map.json"
    empty.write_text('{"schema": 1, "classes": []}')
    words = [f"case={trees[0].parent}/sizes.db", f"before={trees[0]}", f"after={trees[0]}"]
    outcome = run([*words, f"map={empty}"])
    assert outcome.exit_code == 1
    assert "the class stays Linen" in outcome.lines[0]
    assert outcome.lines[-1].endswith("nothing was compared")


def test_so_many_instances_of_a_class_can_be_chosen_and_others_are_listed(
    trees: tuple[Path, Path],
) -> None:
    code, lines = compare(trees, "class=Block", "instances=2")
    left = [line for line in lines if "instances=2 of this class were compared" in line]
    assert code == 0
    assert lines[-1].endswith("3 recorded modules: 2 identical, 1 not compared")
    assert [line.split()[0] for line in left] == ["models.Block(x[2,3,6])"]  # fields as of another


@pytest.mark.parametrize("key", ["class=Model", "instances=1", "shim=shim.py"])
def test_keys_of_recorded_cases_are_refused_for_case_files(key: str, tmp_path: Path) -> None:
    case = tmp_path / "case.py"
    case.write_text("")
    outcome = run([f"case={case}", key])
    assert (outcome.exit_code, is_evidence(case)) == (2, False)
    assert "a file that record wrote" in outcome.lines[0]


def replay(
    tmp_path: Path, fields: Any, inputs: dict[str, Any], passed: dict[str, str] | None = None
) -> Replay:
    call = {"inputs": inputs, "passed": passed or {}}
    content = {"fields": fields, **call, "initial": call, "around": None}
    file = tmp_path / "case.json"
    file.write_text(json.dumps(content))
    return Replay(file)


def test_arguments_are_passed_as_they_were(tmp_path: Path) -> None:
    inputs = {
        "a": 1,
        "more": {"$": "dict", "items": [["c", 4], ["d", 5]]},
        "others": {"$": "tuple", "items": [2, 3]},
        "z": 0,
        "k": 6,
    }
    passed = {"z": "position", "a": "position", "others": "star", "k": "keyword"}
    args, kwargs = replay(tmp_path, None, inputs, {**passed, "more": "keywords"}).inputs()
    assert (args, kwargs) == ((0, 1, 2, 3), {"k": 6, "c": 4, "d": 5})


def test_a_set_is_built_again(tmp_path: Path) -> None:
    value = {"$": "set", "items": [1, {"$": "text", "value": "a"}], "frozen": True}
    assert replay(tmp_path, value, {}).linen() == frozenset({1, "a"})


def test_inputs_have_the_recorded_shapes_and_values_that_every_model_takes(
    tmp_path: Path,
) -> None:
    def array(dtype: str, *shape: int) -> dict[str, Any]:
        return {"$": "array", "shape": list(shape), "dtype": dtype}

    recorded = {
        "x": array("bfloat16", 2, 30),
        "ids": array("int32", 4, 50),
        "lengths": array("int32", 4),
        "mask": array("bool", 40),
        "nested": {"$": "dict", "items": [["a", {"$": "tuple", "items": [True, None]}]]},
    }
    args, kwargs = replay(tmp_path, None, recorded).inputs()
    assert args == ()
    assert (kwargs["x"].shape, str(kwargs["x"].dtype)) == ((2, 30), "bfloat16")
    assert set(np.unique(kwargs["ids"])) == {0, 1}
    assert set(np.unique(kwargs["lengths"])) == {1}
    assert set(np.unique(kwargs["mask"])) == {False, True}
    assert kwargs["nested"] == {"a": (True, None)}


@pytest.mark.parametrize("value", [{"$": "withheld", "length": 3}, {"$": "opaque", "type": "T"}])
def test_what_was_not_written_down_cannot_be_built(tmp_path: Path, value: Any) -> None:
    with pytest.raises(CannotReplay):
        replay(tmp_path, value, {}).linen()
