"""A case on a mesh of simulated devices, in a process that has them."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import flax.linen as nn, jax, numpy as np, sys
from flax import nnx
from nnx_migrate.parity import ParityCase, check

class Linen(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.with_logical_constraint(nn.Dense(4)(x), ("batch", "embed"))
        return nn.relu(x)

class Nnx(nnx.Module):
    def __init__(self, *, rngs):
        self.Dense_0 = nnx.Linear(6, 4, rngs=rngs)

    def __call__(self, x):
        x = self.Dense_0(x)
        if sys.argv[1] == "constrained":
            x = nn.with_logical_constraint(x, ("batch", "embed"))
        return nn.relu(x)

rows = int(sys.argv[2])
print(check(ParityCase(
    linen=Linen(),
    nnx=lambda rngs: Nnx(rngs=rngs),
    inputs=(np.arange(rows * 6, dtype=np.float32).reshape(rows, 6) / 50 - 0.4,),
    mesh={"data": 4, "model": 2},
    axis_rules=(("batch", "data"), ("embed", "model")),
)).to_json())
"""


def run(*words):
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["8", "3"])  # 3 rows do not divide: they stay whole
def test_a_case_runs_on_a_mesh(rows):
    report = run("constrained", rows)
    program = next(check for check in report["checks"] if check["name"] == "program")
    assert report["verdict"] in ("identical", "equal_by_rules")
    assert program["details"] in ([], ["the same by dataflow"])
    assert report["mesh"] == "data:4,model:2"


@pytest.mark.slow
def test_a_lost_sharding_constraint_is_no_longer_the_same_program():
    report = run("unconstrained", "8")
    assert report["verdict"] in ("numerically_equal", "different")
    program = next(check for check in report["checks"] if check["name"] == "program")
    assert any("sharding" in line for line in program["details"])
