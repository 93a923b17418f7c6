"""Scanned, rematerialised blocks compile to Linen's programs on a mesh of Auto or Explicit axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx
from jax.sharding import AxisType

from tests.programs import lowering
from tests.programs.lowering import Arrays, Compiled
from tests.sharding.meshes import AUTO, EXPLICIT, mesh

RULES = (
    ("batch", "fsdp"),
    ("batch", "expert"),
    ("act_mlp", "tensor"),
    ("act_heads", "tensor"),
    ("act_exp", "expert"),
    ("batch_moe", "fsdp"),
    ("exp", "expert"),
    ("embed", "fsdp"),
    ("mlp", "tensor"),
    ("heads", "tensor"),
)
MODELS = {"transformer": ("Decoder", (2, 4, 16)), "experts": ("Mixture", (2, 4, 2, 16))}
# Some of the specs, written by hand: both sides could agree on none.
EXPECTED = {
    "transformer": {
        "layers/attention/query": jax.P("fsdp", None, "tensor", None),
        "layers/mlp/wo": jax.P("tensor", None, "fsdp"),
        "layers/RMSNorm_0/scale": jax.P(None, None),
    },
    "experts": {
        "moe_layers/moe/wi": jax.P(None, "expert", "fsdp", "tensor"),
        "moe_layers/moe/router/gate": jax.P(None, "fsdp", None),
    },
}


@dataclass(frozen=True)
class Both:
    linen_specs: Arrays
    nnx_specs: Arrays
    linen: Compiled
    nnx: Compiled


def both(name: str, kind: AxisType, edit: Any = lambda text: text) -> Both:
    pair = lowering.pair(name, edit)
    cls, sizes = MODELS[name]
    devices = mesh(kind, fsdp=2, expert=2, tensor=2)
    x = lowering.placed(devices, jax.P("fsdp"))
    explicit = kind is EXPLICIT
    abstract = nnx.eval_shape(
        lambda: getattr(pair.nnx, cls)(*sizes, explicit, in_features=8, rngs=nnx.Rngs(0))
    )
    params = nnx.state(abstract, nnx.Param)
    # The sharding of parameters is said without a mesh in force: any kind of axes will do.
    plain = getattr(pair.linen, cls)(*sizes)
    theirs = lowering.linen_shardings(plain, np.asarray(x), devices, RULES)
    ours = lowering.nnx_shardings(params, devices, RULES)
    variables = lowering.values(params, ours)
    model = getattr(pair.linen, cls)(*sizes, explicit)
    return Both(
        {path: one.spec for path, one in theirs.items()},
        {path: one.spec for path, one in ours.items()},
        lowering.compiled(lowering.linen_outputs(model), variables, x, devices, RULES),
        lowering.compiled(lowering.nnx_outputs(abstract), variables, x, devices, RULES),
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("name", MODELS)
def test_program_memory_collectives_and_specs_are_linens(name: str, kind: AxisType) -> None:
    found = both(name, kind)
    assert found.nnx_specs == found.linen_specs
    assert {path: found.nnx_specs[path] for path in EXPECTED[name]} == EXPECTED[name]
    assert found.nnx.program == found.linen.program
    for words in ("stablehlo.while", "sharding_constraint"):
        assert words in found.nnx.program
    assert found.nnx.memory == found.linen.memory
    assert found.nnx.memory["temp_size_in_bytes"] > 0
    assert found.nnx.collectives == found.linen.collectives
    assert sum(found.nnx.collectives.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('("batch", "length", "act_mlp")', '("batch", "length", "act_embed")'),
        ("block = nnm.remat(\n", "block = (lambda one, **_: one)(\n"),
    ],
    ids=["another constraint", "no remat"],
)
def test_the_comparison_notices(old: str, new: str) -> None:
    def spoilt(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    found = both("transformer", AUTO, spoilt)
    assert found.nnx.program != found.linen.program
