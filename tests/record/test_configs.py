"""Sizes that stand in config objects: read as far as numbers can be changed, no literals beyond."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nnx_migrate.evidence.read import Evidence, load
from tests.record.test_command import ROOT

MODELS = """\
from typing import Any
import flax.linen as nn


class Config:
    def __init__(self, **fields):
        vars(self).update(fields)


class Sealed:
    __slots__ = ('width',)

    def __init__(self, width):
        self.width = width


class Towers(nn.Module):
    config: Any

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.config.left.width)(x)
        x = nn.Dense(self.config.left.inner.widths[1])(x)
        return nn.Dense(5)(x)


class FromSealed(nn.Module):
    config: Any

    @nn.compact
    def __call__(self, x):
        return nn.Dense(5)(nn.Dense(self.config.width)(x))


class FromFunction(nn.Module):
    width: Any

    @nn.compact
    def __call__(self, x):
        return nn.Dense(5)(nn.Dense(self.width())(x))


class Fixed(nn.Module):
    features: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.features)(nn.Dense(24)(x))
"""

PROGRAM = """\
import jax, jax.numpy as jnp
from models import *

inner = Config(widths=[7, 24], unread=11)
config = Config(left=Config(width=20, inner=inner), right=Config(width=20), unread=Config(width=9))
inner.parent = config
x = jnp.ones((2, 6))
chosen = 24
for model in (Towers(config), FromSealed(Sealed(24)), FromFunction(lambda: chosen), Fixed()):
    model.init(jax.random.key(0), x)
"""


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    folder: Path = tmp_path_factory.mktemp("project")
    (folder / "models.py").write_text(MODELS)
    (folder / "main.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "nnx_migrate", "record", "--", sys.executable, "main.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return load(folder / "sizes.db")


def sizes(evidence: Evidence, name: str) -> list[tuple[str | None, str]]:
    """What each layer's input is, and why not if it is not told."""
    (found,) = [cls for cls in evidence.classes if cls.key.qualname == name]
    sites = sorted(found.sizes.items(), key=lambda item: item[0][0].line)
    return [(s.expression, s.reason) for (*_, argument, axis), s in sites if axis == -1]


def test_numbers_of_nested_configs_and_of_lists_in_them_are_sources(evidence: Evidence) -> None:
    assert sizes(evidence, "Towers") == [
        ("x.shape[-1]", ""),
        ("self.config.left.width", ""),
        ("self.config.left.inner.widths[1]", ""),
    ]


def test_numbers_that_the_code_does_not_read_are_not_written_down(evidence: Evidence) -> None:
    (found,) = [cls for cls in evidence.classes if cls.key.qualname == "Towers"]
    (instance,) = found.instances.values()
    config = instance.fields["fields"]["config"]
    assert config["fields"].keys() == {"left"}
    assert config["fields"]["left"]["fields"].keys() == {"width", "inner"}
    assert config["fields"]["left"]["fields"]["inner"]["fields"].keys() == {"widths"}


@pytest.mark.parametrize(("name", "kind"), [("FromSealed", "Sealed"), ("FromFunction", "function")])
def test_a_literal_that_may_come_from_what_is_not_written_down_is_no_answer(
    evidence: Evidence, name: str, kind: str
) -> None:
    literal = f"the 24 in 24 may stand in a {kind}, which is not written down"
    assert [s for s in sizes(evidence, name) if s[0] != "x.shape[-1]"] == [(None, literal)]


def test_a_literal_of_the_code_is_an_answer_where_everything_is_written_down(
    evidence: Evidence,
) -> None:
    assert ("24", "") in sizes(evidence, "Fixed")
