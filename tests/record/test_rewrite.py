"""``record``, then ``rewrite --evidence``: what the report says, and what is refused."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.cli import main
from tests.record.test_command import ROOT

# What evidence does for the explicit form; what stays lazy, others test.
pytestmark = pytest.mark.usefixtures("explicit_engine")

MODELS = """\
import jax.numpy as jnp
import flax.linen as nn
from helpers import mystery


class Model(nn.Module):
    hidden: int
    depth: int = 2

    @nn.compact
    def __call__(self, x):
        y = nn.Dense(self.hidden)(mystery(x))
        for _ in range(self.depth):
            y = nn.Dense(self.hidden)(mystery(y))
        return nn.Dense(3)(y)
"""

HELPERS = """\
import importlib
jnp = importlib.import_module('jax.numpy')


def mystery(x):
    return getattr(jnp, 'concatenate')([x, x], -1)
"""

PROGRAM = """\
import jax, jax.numpy as jnp
from models import Model

Model(8).init(jax.random.key(0), jnp.ones((2, 5)))
Model(6, depth=3).init(jax.random.key(0), jnp.ones((2, 7)))
"""


@pytest.fixture
def project(tmp_path: Path, recorded: bytes) -> Path:
    write(tmp_path)
    (tmp_path / "sizes.db").write_bytes(recorded)
    return tmp_path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("recorded")
    write(folder)
    command = [sys.executable, "-m", "nnx_migrate", "record", "--", sys.executable, "main.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return (folder / "sizes.db").read_bytes()


def write(folder: Path) -> None:
    (folder / "pyproject.toml").touch()
    (folder / "models.py").write_text(MODELS)
    (folder / "helpers.py").write_text(HELPERS)
    (folder / "main.py").write_text(PROGRAM)


def rewrite(project: Path, *more: str) -> tuple[int, dict[str, Any]]:
    report = project / "report.json"
    words = ["rewrite", str(project / "models.py"), "--report", str(report), *more]
    code = main(words)
    return code, json.loads(report.read_text())


def test_with_evidence_a_refused_class_converts_and_the_report_tells_where_sizes_come_from(
    project: Path,
) -> None:
    code, report = rewrite(project, "--evidence", str(project / "sizes.db"))
    (cls,) = report["classes"]
    assert (code, cls["outcome"], cls["confidence"]) == (0, "rewritten", "review")
    assert cls["new_arguments"] == ["in_features"]
    values = [(one["value"], one["source"]) for one in cls["sizes"]]
    assert values[0] == ("2 * in_features", "recorded")
    assert values[1] == ("2 * self.hidden", "recorded")
    assert values[2] == ("self.hidden", "both")
    assert cls["sizes"][0]["note"].startswith("2 recorded instances, ")
    assert "nnx.Linear(2 * in_features, self.hidden" in (project / "models.py").read_text()


def test_without_evidence_the_report_tells_sizes_of_the_code_from_arguments(
    project: Path,
) -> None:
    _, report = rewrite(project, "--check")
    (cls,) = report["classes"]
    assert [(one["value"], one["source"]) for one in cls["sizes"]] == [
        ("Dense_0_in_features", "argument"),
        ("in_features_of[scope_name]", "argument"),
        ("self.hidden", "static"),
    ]


def remedies(report: dict[str, Any], name: str) -> dict[str, str]:
    (cls,) = [one for one in report["classes"] if one["name"] == f"models.{name}"]
    return {one["name"]: one["remedy"] for one in cls["arguments"]}


def test_an_argument_that_evidence_would_remove_says_what_to_record(project: Path) -> None:
    _, report = rewrite(project, "--check")
    asked = report["classes"][0]
    assert [one["name"] for one in asked.get("arguments", ())] == asked["new_arguments"]
    (project / "models.py").write_text(MODELS.replace("range(self.depth)", "range(1)"))
    _, report = rewrite(project, "--check")
    assert remedies(report, "Model")["Dense_0_in_features"] == (
        "run `nnx-migrate record` on code that builds Model with calls that reach Dense_0"
    )


def test_evidence_of_a_file_that_was_edited_since_is_rejected(project: Path) -> None:
    models = project / "models.py"
    models.write_text(MODELS.replace("nn.Dense(3)", "nn.Dense(4)"))
    code, report = rewrite(project, "--check", "--evidence", str(project / "sizes.db"))
    stale = [one for one in report["findings"] if one["rule"] == "evidence"]
    assert code == 1
    assert [(one["path"], one["line"], one["outcome"]) for one in stale] == [
        ("models.py", 6, "refused")
    ]
    assert "models.py is not what it was when Model was recorded" in stale[0]["message"]
    sources = {one["source"] for cls in report["classes"] for one in cls.get("sizes", ())}
    assert sources <= {"static", "argument"}


def test_evidence_of_other_code_only_is_an_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = project / "models.py"
    models.write_text(MODELS.replace("class Model", "class Other"))
    words = ["rewrite", str(models), "--check", "--evidence", str(project / "sizes.db")]
    assert main(words) == 2
    assert "expected calls of the classes to rewrite, found only Model" in capsys.readouterr().err


CONDITIONAL = """\
import flax.linen as nn
from helpers import mystery


class Flag(nn.Module):
    features: int
    norm: bool = False

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.features)(x)
        if self.norm:
            x = nn.LayerNorm()(x)
        return x


class Residual(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x):
        h = mystery(x)
        if h.shape[-1] != self.features:
            h = nn.Dense(self.features, name='project')(h)
        return nn.Dense(3)(h)


class Other(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x):
        h = mystery(x)
        if mystery(h).size > 4 * self.features:
            h = nn.Dense(self.features, name='project')(h)
        return nn.Dense(3)(h)


class Counted(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x, n=0):
        if n > 1:
            x = nn.Dense(self.features)(x)
        return nn.Dense(3)(x)
"""

BUILDS = """\
import jax, jax.numpy as jnp
from models import Counted, Flag, Other, Residual

key, x = jax.random.key(0), jnp.ones((2, 5))
Flag(8).init(key, x), Flag(6, norm=True).init(key, x)
Residual(8).init(key, x), Residual(10).init(key, x), Residual(6).init(key, jnp.ones((2, 7)))
Other(8).init(key, x), Other(40).init(key, x)
Counted(7).init(key, x, 1), Counted(7).init(key, x, 2)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A project whose instances build different submodules, rewritten, and its report."""
    folder = tmp_path_factory.mktemp("built")
    write(folder)
    (folder / "models.py").write_text(CONDITIONAL)
    (folder / "main.py").write_text(BUILDS)
    command = [sys.executable, "-m", "nnx_migrate", "record", "--", sys.executable, "main.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    code, report = rewrite(folder, "--evidence", str(folder / "sizes.db"))
    assert code == 1  # Counted is refused
    return folder, report


def told(report: dict[str, Any], name: str) -> dict[str, Any]:
    """What the report says of the one submodule that only some instances of a class build."""
    (cls,) = [one for one in report["classes"] if one["name"] == f"models.{name}"]
    (place,) = cls["conditional"]
    return {"outcome": cls["outcome"], **place}


def findings(report: dict[str, Any]) -> list[str]:
    return [one["message"] for one in report["findings"] if one["rule"] == "evidence"]


def test_a_condition_on_a_field_is_the_recorded_one(built: tuple[Path, dict[str, Any]]) -> None:
    place = told(built[1], "Flag")
    assert (place["condition"], place["source"]) == ("self.norm", "both")
    assert (place["built"], place["instances"], place["submodule"]) == (1, 2, "nn.LayerNorm()")
    assert place["note"].startswith("it gives all ")


def test_a_comparison_with_a_shape_that_the_code_does_not_tell_is_completed(
    built: tuple[Path, dict[str, Any]],
) -> None:
    place = told(built[1], "Residual")
    assert place["source"] == "recorded"
    assert place["condition"] == "2 * x.shape[-1] != self.features"
    assert "        if 2 * in_features != self.features:\n" in (built[0] / "models.py").read_text()
    reviewed = [one["message"] for one in built[1]["findings"] if one["rule"] == "review"]
    assert any("built where 2 * x.shape[-1] != self.features" in text for text in reviewed)


def test_without_an_exact_rule_the_submodule_is_named(built: tuple[Path, dict[str, Any]]) -> None:
    place = told(built[1], "Other")
    assert (place["outcome"], place["source"], place["condition"]) == ("rewritten", "open", "")
    assert (
        "1 of 2 recorded instances build nn.Dense(self.features, name='project'):"
        " no condition over fields and inputs fits"
    ) in findings(built[1])


def test_a_refused_class_is_told_what_was_recorded(built: tuple[Path, dict[str, Any]]) -> None:
    place = told(built[1], "Counted")
    assert (place["outcome"], place["source"], place["condition"]) == ("refused", "open", "n > 1")
    assert any("exactly where n > 1; a field that says so" in text for text in findings(built[1]))


def tampered(built: tuple[Path, dict[str, Any]], folder: Path, statement: str) -> dict[str, Any]:
    """The report when the evidence says something else."""
    write(folder)
    (folder / "models.py").write_text(CONDITIONAL)
    (folder / "sizes.db").write_bytes((built[0] / "sizes.db").read_bytes())
    with closing(sqlite3.connect(folder / "sizes.db")) as connection, connection:
        assert connection.execute(statement).rowcount > 0
    return rewrite(folder, "--check", "--evidence", str(folder / "sizes.db"))[1]


def test_a_submodule_that_was_built_where_the_code_says_not_is_refused(
    built: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    wrong = """UPDATE instances SET fields = replace(fields, '"norm": true', '"norm": false')"""
    report = tampered(built, tmp_path, wrong)
    (cls,) = [one for one in report["classes"] if one["name"] == "models.Flag"]
    assert cls["outcome"] == "refused"
    assert "disagree on whether this submodule is built" in cls["reason"]


def test_a_submodule_that_was_not_called_where_the_code_builds_it_is_named(
    built: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    less = "DELETE FROM calls WHERE builds LIKE '%LayerNorm' AND trace_id % 2 = 0"
    report = tampered(built, tmp_path, less)
    place = told(report, "Flag")
    assert (place["outcome"], place["source"]) == ("rewritten", "open")
    assert place["note"] == "a recorded call without it has self.norm"


def test_an_argument_that_no_evidence_removes_says_so(
    built: tuple[Path, dict[str, Any]],
) -> None:
    assert remedies(built[1], "Flag") == {
        "in_features": "none: NNX builds before the first call, and only callers know what they pass"
    }


def test_an_argument_that_recorded_calls_did_not_remove_says_why(
    built: tuple[Path, dict[str, Any]],
) -> None:
    found = remedies(built[1], "Other")
    assert found["Dense_0_in_features"].startswith(
        "record Other with other numbers, one at a time: "
    )
    assert found["Dense_0_in_features"].endswith(" (2 instances)")
