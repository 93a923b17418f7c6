"""PReLU: what becomes of it, what is refused, and that it computes Linen's bits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate.nn import factory
from tests.constructs.convert import refusal, text
from tests.nn.oracle import array, check
from tests.rewrite.running import compare, migrated


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.PReLU()", "nnx.PReLU()"),
        ("nn.PReLU(name='act')", "nnx.PReLU()"),
        (
            "nn.PReLU(jnp.float16, 0.1)",
            "nnx.PReLU(param_dtype=jnp.float16, negative_slope_init=0.1)",
        ),
        ("nn.PReLU", 'nnm.factory.of(nnx.PReLU, "param_dtype", "negative_slope_init")'),
        (
            "nn.PReLU(*fields)",
            'nnm.factory.of(nnx.PReLU, "param_dtype", "negative_slope_init")(*fields)',
        ),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [("nn.PReLU(slope=0.1)", "unknown argument 'slope'"), ("nn.PReLU(1, 2, 3, 4, 5)", "5 pos")],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


@pytest.mark.parametrize("param_dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_it_has_linens_parameter_values_and_gradients(dtype: type, param_dtype: type) -> None:
    check(
        linen.PReLU(param_dtype, 0.2),
        lambda rngs: nnx.PReLU(param_dtype=param_dtype, negative_slope_init=0.2),
        array(2, 3, dtype=dtype),
        same_program=dtype == param_dtype,  # the native layer casts the slope elsewhere
    )


def test_its_factory_takes_linens_arguments_and_keeps_the_width() -> None:
    build = factory.of(nnx.PReLU, "param_dtype", "negative_slope_init")
    layer = build(jnp.bfloat16, 0.3, in_features=4, rngs=nnx.Rngs(0))
    assert layer.negative_slope[...] == jnp.asarray(0.3, jnp.bfloat16)
    assert nnm.linen_name(build) == "PReLU"
    assert nnm.out_features(layer, 4) == 4
    assert jax.eval_shape(layer, jnp.ones((2, 4))).shape == (2, 4)
    with pytest.raises(TypeError, match="2 fields, found 3"):
        build(jnp.bfloat16, 0.3, 1)


def test_as_a_field_it_has_linens_paths_and_bits() -> None:
    source = (
        "import flax.linen as nn\n\n\n"
        "class Model(nn.Module):\n"
        "    act: type = nn.PReLU\n\n"
        "    @nn.compact\n"
        "    def __call__(self, x):\n"
        "        return nn.Dense(3)(self.act()(nn.Dense(4)(x)))\n"
    )
    report = compare(source, "Model()", {"in_features": 6}, (np.asarray(array(2, 6)),))
    assert report.verdict == "identical", report


def test_isinstance_asks_for_the_class_it_becomes() -> None:
    source = (
        "import flax.linen as nn\n\n\n"
        "class Model(nn.Module):\n"
        "    def setup(self):\n"
        "        self.act = nn.PReLU()\n\n"
        "    def __call__(self, x):\n"
        "        return self.act(x) if isinstance(self.act, nn.PReLU) else x\n"
    )
    assert "isinstance(self.act, nnx.PReLU)" in migrated(source)
