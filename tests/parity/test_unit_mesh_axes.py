"""Mesh axes of size 1 in shardings: not a difference; all others are."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from nnx_migrate.parity.programs.graphs import equal_by_rules
from nnx_migrate.parity.programs.unit_mesh_axes import UNIT_MESH_AXES, without_unit_axes

MODULE = """\
module {{
  sdy.mesh @mesh = <["data"=1, "fsdp"=4, "context"=1]>
  func.func public @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {{
    %0 = {op} %arg0 : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{sharding}]> : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }}
}}
"""


def module(sharding: str, op: str = "stablehlo.sine") -> str:
    return MODULE.format(sharding=sharding, op=op)


@pytest.mark.parametrize(
    ("with_units", "without"),
    [
        ('{"data", "fsdp", "context"}, {}', '{"fsdp"}, {}'),
        ('{"data"}, {"context"}', "{}, {}"),
        ('{"fsdp"}, {"context", ?}', '{"fsdp"}, {?}'),
        ('{"context", "fsdp"}p1, {}', '{"fsdp"}p1, {}'),
    ],
)
def test_unit_axes_leave_shardings(with_units: str, without: str) -> None:
    assert without_unit_axes(module(with_units)) == module(without)
    assert equal_by_rules(module(with_units), module(without)) == (UNIT_MESH_AXES,)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (module('{"fsdp"}, {}'), module('{}, {"fsdp"}')),
        (module('{"data", "fsdp"}, {}'), module("{}, {}")),
        (module('{"data"}, {}'), module("{?}, {}")),
        (module('{"data"}, {}'), module("{}, {}").replace('"data"=1', '"data"=2')),
        (module('{"data"}, {}'), module("{}, {}", "stablehlo.cosine")),
    ],
    ids=["other dimension", "real axis", "open dimension", "other mesh", "other operation"],
)
def test_other_differences_stay(left: str, right: str) -> None:
    assert equal_by_rules(left, right) is None


def test_meshes_keep_their_unit_axes() -> None:
    assert '["data"=1, "fsdp"=4, "context"=1]' in without_unit_axes(module("{}, {}"))


COMPILED = """
import json, jax, numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

devices = np.array(jax.devices()).reshape(1, 4, 1)
mesh = Mesh(devices, ("data", "fsdp", "context"), axis_types=(AxisType.Auto,) * 3)
x = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)

def run(rows, columns):
    def f(x):
        y = jax.lax.with_sharding_constraint(x @ x, NamedSharding(mesh, P(rows, columns)))
        return y @ y.T
    compiled = jax.jit(f).lower(x).compile()
    lines = [line.split(", metadata=")[0] for line in compiled.as_text().splitlines()[1:]]
    return lines, np.asarray(compiled(x)).tobytes().hex()

# Both from one line of this file: places are part of the text.
one, other = (run(*axes) for axes in ((("data", "fsdp"), "context"), ("fsdp", None)))
print(json.dumps({"text": one[0] == other[0], "bits": one[1] == other[1], "lines": len(one[0])}))
"""


def test_both_forms_compile_to_one_program_and_the_same_bits() -> None:
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    }
    done = subprocess.run(
        [sys.executable, "-c", COMPILED],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["lines"] > 10
    assert (found["text"], found["bits"]) == (True, True)
