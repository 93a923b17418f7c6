"""A Linen module that reads values cannot be traced: both sides run operation by operation."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate.parity import BadCase, ParityCase, ParityReport, check
from nnx_migrate.parity.files.run import run_case_file
from nnx_migrate.parity.instantiation.calls import record_calls

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


class Rates(nn.Module):
    """Reads the values of an array to say how its layers scale."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for rate in [one.item() for one in jnp.linspace(0.5, 1.0, 2)]:
            x = nn.tanh(nn.Dense(4)(x) * rate)
        return nn.Dropout(0.5, deterministic=False)(x)


class Migrated(nnx.Module):
    """As the rewriter leaves it: only the constructor reads values."""

    scale = 1.0

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(4, 4, rngs=rngs)
        self.Dense_1 = nnx.Linear(4, 4, rngs=rngs)
        self.Dropout_0 = nnx.Dropout(0.5, rngs=rngs)
        self.rates = [one.item() for one in jnp.linspace(0.5, 1.0, 2)]

    def __call__(self, x: jax.Array) -> jax.Array:
        x = nnx.tanh(self.Dense_0(x) * self.rates[0])
        x = nnx.tanh(self.Dense_1(x) * self.rates[1] * self.scale)
        return self.Dropout_0(x)


class Scaled(Migrated):
    scale = 1.5


class Reading(Migrated):
    def __call__(self, x: jax.Array) -> jax.Array:
        return super().__call__(x) * jnp.ones(()).item()


CASE = ParityCase(
    linen=Rates(), nnx=lambda rngs: Migrated(rngs=rngs), inputs=(X,), rngs={"dropout": 0}, steps=2
)


def checked(**changes: Any) -> ParityReport:
    return check(dataclasses.replace(CASE, **changes))


def test_all_numbers_are_compared_and_the_program_is_said_not_to_be() -> None:
    report = checked()
    assert (report.ok, report.verdict) == (True, "numerically_equal")
    ran = {one.name for one in report.checks if one.status == "pass" and one.leaves}
    assert ran >= {"control", "init_values", "forward", "loss", "gradients", "rng"}
    (line,) = (one for one in report.not_checked if one.startswith("program"))
    assert "Linen itself cannot be traced: ConcretizationTypeError" in line
    assert any(one.startswith("losses_over_steps") for one in report.not_checked)


def test_another_model_is_still_different_and_located() -> None:
    report = checked(nnx=lambda rngs: Scaled(rngs=rngs))
    assert report.verdict == "different"
    assert {"forward", "gradients"} <= {one.name for one in report.checks if one.status == "fail"}
    assert (report.first_difference or {}).get("path") == "Dropout_0"


def test_an_nnx_side_that_reads_values_too_is_compared() -> None:
    assert checked(nnx=lambda rngs: Reading(rngs=rngs)).verdict == "numerically_equal"


class Plain(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(4)(x)


class ReadsOnlyAfter(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(4, 4, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.Dense_0(x) * jnp.ones(()).item()


def test_values_that_only_the_nnx_side_reads_are_a_defect() -> None:
    report = checked(linen=Plain(), nnx=lambda rngs: ReadsOnlyAfter(rngs=rngs), rngs={})
    assert report.check("forward").status == "fail"
    assert "ConcretizationTypeError" in report.check("forward").details[0]


class Broken(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        nn.Dense(4)(x)
        raise ValueError(f"no {jnp.ones(()).item()}")


def test_what_raises_either_way_cannot_be_compared() -> None:
    with pytest.raises(BadCase, match=r"cannot be initialised: ValueError: no 1\.0"):
        checked(linen=Broken())


def test_the_shapes_of_its_calls_are_recorded() -> None:
    calls = record_calls(Rates(), (X,), {})
    assert [(one.path, one.shape("inputs")) for one in calls] == [
        ((), None),
        (("Dense_0",), (3, 4)),
        (("Dense_1",), (3, 4)),
        (("Dropout_0",), (3, 4)),
    ]


def test_a_file_case_runs_both_processes_alike(tmp_path: Path) -> None:
    case = tmp_path / "case.py"
    case.write_text(
        "import numpy as np\n"
        "from tests.parity import test_eager_sides as models\n"
        "linen = models.Rates\n"
        "inputs = lambda: (models.X,)\n"
        "nnx = lambda rngs: models.Migrated(rngs=rngs)\n"
        "CASE = {'rngs': {'dropout': 0}}\n",
        encoding="utf-8",
    )
    root = Path(__file__).parents[2]
    report = run_case_file(case, root, root)
    assert (report.verdict, report.check("stacks").status) == ("numerically_equal", "pass")
