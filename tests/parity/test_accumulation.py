"""Steps that accumulate gradients: what they compute, and that a difference within them shows."""

from __future__ import annotations

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from nnx_migrate.parity import ParityCase, check
from nnx_migrate.parity.case import BadCase
from nnx_migrate.parity.sides.linen import evaluate_linen
from nnx_migrate.parity.training.steps import for_calls

X = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)


class Linen(nn.Module):
    normalized: bool = True

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Dense(6)(x)
        if self.normalized:
            x = nn.BatchNorm(use_running_average=False, momentum=0.5)(x)
            x = nn.Dropout(0.5, deterministic=False)(x)
        return nn.Dense(3)(x)


class Migrated(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(6, 6, rngs=rngs)
        self.BatchNorm_0 = nnx.BatchNorm(6, momentum=0.5, use_running_average=False, rngs=rngs)
        self.Dropout_0 = nnx.Dropout(0.5, deterministic=False, rngs=rngs)
        self.Dense_1 = nnx.Linear(6, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.Dense_1(self.Dropout_0(self.BatchNorm_0(self.Dense_0(x))))


class KeepsItsMean(Migrated):
    """Statistics go back to what they were after the second micro-batch."""

    def __call__(self, x: Any) -> Any:
        before = self.BatchNorm_0.mean[...]
        out = super().__call__(x)
        mean = self.BatchNorm_0.mean
        mean[...] = jnp.where(jnp.any(before != 0), before, mean[...])
        return out


class Spoils(Migrated):
    def __call__(self, x: Any) -> Any:
        self.Dense_0.kernel.set_metadata("out_sharding", ("mlp", "embed"))
        return super().__call__(x)


def mean_of_squares(outputs: Any, x: Any) -> Any:
    return jnp.mean(outputs * outputs)


def case_of(migrated: type[Migrated] = Migrated, **changes: Any) -> ParityCase:
    given: dict[str, Any] = {
        "linen": Linen(),
        "nnx": lambda rngs: migrated(rngs=rngs),
        "inputs": (X,),
        "rngs": {"dropout": 1},
        "collections": ("batch_stats",),
        "loss": mean_of_squares,
        "steps": 3,
        "gradient_accumulation_steps": 4,
        "keeps_state": True,
    }
    return ParityCase(**{**given, **changes})


def test_a_model_with_statistics_and_dropout_is_the_same_program() -> None:
    report = check(case_of())
    assert report.verdict in ("identical", "equal_by_rules"), report.to_json()
    assert report.check("losses_over_steps").leaves == 3


@pytest.mark.parametrize("count", [2, 8])
def test_parts_of_a_mean_make_the_same_step(count: int) -> None:
    plain: dict[str, Any] = {"linen": Linen(normalized=False), "rngs": {}, "collections": ()}
    case = case_of(**plain, optimizer=optax.sgd(0.1), gradient_accumulation_steps=count)
    whole = evaluate_linen(dataclasses.replace(case, gradient_accumulation_steps=1))
    parts = evaluate_linen(case)
    for name, loss in whole.losses.items():
        np.testing.assert_allclose(parts.losses[name], loss, rtol=1e-5)
    for path, array in whole.state.items():
        np.testing.assert_allclose(parts.state[path], array, rtol=1e-4, atol=1e-6)


def test_statistics_move_once_per_micro_batch() -> None:
    case = case_of(steps=1, optimizer=optax.sgd(0.0))
    whole = evaluate_linen(dataclasses.replace(case, gradient_accumulation_steps=1)).state
    parts = evaluate_linen(case).state
    kernel, bias = (whole[f"params/Dense_0/{name}"] for name in ("kernel", "bias"))
    hidden = X @ kernel + bias
    mean = 2 * (whole["batch_stats/BatchNorm_0/mean"] - 0.5 * hidden.mean(axis=0))  # at first
    for part in hidden.reshape(4, 2, 6):
        mean = 0.5 * mean + 0.5 * part.mean(axis=0)
    found = parts["batch_stats/BatchNorm_0/mean"]
    np.testing.assert_allclose(found, mean, rtol=1e-4, atol=1e-6)


def test_a_state_that_moves_otherwise_from_part_to_part_is_different() -> None:
    report = check(case_of(KeepsItsMean))
    assert any("step: " in line for line in report.check("program").details)
    assert not report.ok


def test_a_call_that_spoils_metadata_ends_the_scan() -> None:
    report = check(case_of(Spoils))
    failed = report.check("losses_over_steps")
    assert failed.status == "fail"
    assert "carry" in failed.details[0]


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_what_is_no_number_of_parts_is_refused(count: object) -> None:
    with pytest.raises(BadCase, match="gradient_accumulation_steps: expected a whole number of at"):
        case_of(gradient_accumulation_steps=count)


def test_a_batch_that_the_parts_do_not_divide_fails() -> None:
    report = check(case_of(gradient_accumulation_steps=3))
    assert report.check("losses_over_steps").status == "fail"


@pytest.mark.parametrize(("count", "dtype"), [(1, jnp.float32), (2, jnp.bfloat16)])
def test_only_accumulating_calls_have_parameters_in_half_the_bits(count: int, dtype: Any) -> None:
    params = {"kernel": jnp.ones((2, 2)), "table": jnp.ones((2,), jnp.float16)}
    mesh = jax.make_mesh((1,), ("data",))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    case = case_of(gradient_accumulation_steps=count, mesh=mesh)
    found = for_calls(case, params, dict.fromkeys(params, whole))
    assert (found["kernel"].dtype, found["table"].dtype) == (dtype, jnp.float16)
