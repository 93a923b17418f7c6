"""Checks ``specs`` and ``specs_after_step`` on real pairs, in processes with eight devices."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import sys
import flax.linen as nn, jax, numpy as np
from flax import nnx
from nnx_migrate import nn as nnm
from nnx_migrate.parity import ParityCase, check

RULES = (("batch", "data"), ("embed", ("data", "unused")), ("mlp", "model"), ("mlp", "data"),
         ("model", "data"))  # the last must not change what a mesh axis means
MUTANT = sys.argv[1]


def linen_init(*names):
    return nn.with_logical_partitioning(nn.initializers.lecun_normal(), names)


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x):
        up = self.param("up", linen_init("embed", "mlp"), (8, 16))
        down = self.param("down", linen_init("mlp", "embed"), (16, 8))
        bias = self.param("bias", nn.initializers.normal(1.0), (8,))
        scale = self.param("scale", nn.with_partitioning(nn.initializers.normal(1.0), ("model",)), (8,))
        return nn.relu(x @ up) @ down * scale[None, :] + bias[None, :]


def nnx_init(*names):
    if MUTANT == "unnamed" and names[0] == "embed":
        return nnx.initializers.lecun_normal()
    if MUTANT == "swapped":
        names = names[::-1]
    if MUTANT == "misspelt":
        names = ("embd", *names[1:])
    return nnx.with_metadata(nnx.initializers.lecun_normal(), out_sharding=names)


class Nnx(nnx.Module):
    def __init__(self, *, rngs):
        self.up = nnx.Param(nnx_init("embed", "mlp")(rngs.params(), (8, 16)))
        self.down = nnx.Param(nnx_init("mlp", "embed")(rngs.params(), (16, 8)))
        self.bias = nnx.Param(nnx.initializers.normal(1.0)(rngs.params(), (8,)))
        scale = nnm.with_partitioning(nnx.initializers.normal(1.0), ("model",))
        self.scale = nnx.Param(scale(rngs.params(), (8,)))

    def __call__(self, x):
        if MUTANT == "spoilt":
            self.up.set_metadata("out_sharding", ("mlp", "embed"))
        return nn.relu(x @ self.up[...]) @ self.down[...] * self.scale[...][None, :] + self.bias[...][None, :]


mesh = {"data": 2, "model": 4, "unused": 1}
report = check(ParityCase(
    linen=Linen(),
    nnx=lambda rngs: Nnx(rngs=rngs),
    inputs=(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8),),
    mesh=None if MUTANT == "meshless" else mesh,
    axis_rules=None if MUTANT == "ruleless" else RULES,
    steps=3,
))
print(report.to_json())
"""


@functools.cache
def report(mutant: str) -> dict[str, Any]:
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, mutant],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def check(mutant: str, name: str) -> dict[str, Any]:
    return next(one for one in report(mutant)["checks"] if one["name"] == name)


def test_the_same_names_pass() -> None:
    found = check("none", "specs")
    # four parameters, their two moments, and the optimizer's count
    assert (found["status"], found["leaves"]) == ("pass", 13)
    assert found["details"] == [
        "without logical axis names: opt_state/0/mu/bias, opt_state/0/nu/bias, params/bias",
        "in specs, but of size 1 on this mesh: unused",
    ]
    after = check("none", "specs_after_step")
    assert (after["status"], after["leaves"]) == ("pass", 13)
    assert report("none")["ok"]


def test_losses_of_all_steps_are_the_same_bits() -> None:
    found = check("none", "losses_over_steps")
    assert (found["status"], found["leaves"]) == ("pass", 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "line"),
    [
        ("unnamed", "params/up: names: Linen (embed, mlp), NNX no names"),
        ("swapped", "params/up: names: Linen (embed, mlp), NNX (mlp, embed)"),
        ("misspelt", "params/up: names: Linen (embed, mlp), NNX (embd, mlp)"),
    ],
)
def test_other_names_fail_for_parameters_and_optimizer_state(mutant: str, line: str) -> None:
    for name in ("specs", "specs_after_step"):
        found = check(mutant, name)
        assert found["status"] == "fail"
        assert line in found["details"]
        assert line.replace("params/", "opt_state/0/mu/") in found["details"]
    assert not report(mutant)["ok"]


@pytest.mark.slow
def test_a_call_that_spoils_metadata_fails_after_the_step_only() -> None:
    assert check("spoilt", "specs")["status"] == "pass"
    found = check("spoilt", "specs_after_step")
    assert found["status"] == "fail"
    assert "params/up: names: Linen (embed, mlp), NNX (mlp, embed)" in found["details"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "reason"),
    [
        ("meshless", "the case has no mesh"),
        ("ruleless", "the case has no axis_rules"),
    ],
)
def test_what_cannot_be_laid_out_is_not_run(mutant: str, reason: str) -> None:
    found = check(mutant, "specs_after_step")
    assert found["status"] == "not_run"
    assert found["details"][0].startswith(reason)
    found = check(mutant, "specs")
    assert found["status"] == "pass"
    assert found["details"] == [f"only the names of axes: {reason}"]
    assert any(
        line.startswith(f"specs: {reason}: only names") for line in report(mutant)["not_checked"]
    )
