"""The shim on 1 and on 512 simulated devices, each in a process that has them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import jax, jax.numpy as jnp, numpy as np
from flax import nnx
from jax.sharding import AxisType, Mesh
from nnx_migrate.sharding import constrain, construct_named_sharding, create_sharded, reshard_like

RULES = (("embed", ("fsdp", "expert")), ("mlp", "expert"), ("mlp", "tensor"), ("batch", "fsdp"))
count, kind = int(sys.argv[1]), AxisType[sys.argv[2]]
assert len(jax.devices()) == count
sizes = (64, 4, 2) if count == 512 else (1, 1, 1)
mesh = Mesh(np.array(jax.devices()).reshape(sizes), ("fsdp", "expert", "tensor"), axis_types=(kind,) * 3)

def build():
    names = {"out_sharding": ("embed", "mlp")}
    return nnx.Linear(1024, 1024, kernel_metadata=names, use_bias=False, rngs=nnx.Rngs(0))

model = create_sharded(build, mesh, RULES)
graphdef, state = nnx.split(model)
shardings = construct_named_sharding(state, mesh, RULES)
kernel = state["kernel"][...]
print(f"P{tuple(shardings['kernel'].get_raw_value().spec)}", kernel.addressable_shards[0].data.shape)
assert kernel.sharding == shardings["kernel"].get_raw_value()

def step(state, x):
    model = nnx.merge(graphdef, state, copy=True)
    x = constrain(x, ("batch", None))
    y = constrain(model(x) if sys.argv[2] == "Auto" else x * 2, ("batch", None))
    return reshard_like(y, x)

x = jnp.ones((128, 1024))
with jax.set_mesh(mesh), nnx.logical_axis_rules(RULES):
    jitted = jax.jit(step, in_shardings=(shardings, None))
    y = jitted(state, x) if count == 1 else jitted.lower(state, x)
print(type(y).__name__)
"""
SHAPES = {
    1: "P(None, None) (1024, 1024)",
    512: "P(('fsdp', 'expert'), 'tensor') (4, 512)",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("count", [1, 512])
def test_models_are_created_constrained_and_resharded(count: int, kind: str) -> None:
    flags = f"--xla_force_host_platform_device_count={count}"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(count), kind],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made, result = done.stdout.splitlines()
    assert made == SHAPES[count]
    assert result == ("ArrayImpl" if count == 1 else "Lowered")
