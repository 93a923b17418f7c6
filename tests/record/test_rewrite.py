"""``record``, then ``rewrite --evidence``: what the report says, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
    assert cls["new_arguments"] == ["Dense_0_in_features"]  # what the loop builds is lazy
    assert [(one["value"], one["source"]) for one in cls["sizes"]] == [
        ("Dense_0_in_features", "argument"),
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


class Other(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x):
        h = mystery(x)
        if self.features < 20:
            h = nn.Dense(self.features, name='project')(h)
        return nn.Dense(3)(h)
"""

BUILDS = """\
import jax, jax.numpy as jnp
from models import Flag, Other

key, x = jax.random.key(0), jnp.ones((2, 5))
Flag(8).init(key, x), Flag(6, norm=True).init(key, x)
Other(8).init(key, x), Other(40).init(key, x)
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
    assert code == 0
    return folder, report


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
