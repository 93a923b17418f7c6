"""Methods that read fields of built-in layers."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from tests.rewrite.classes.support import converted, refusal

MODEL = """\
class M(nn.Module):
    n: int

    def setup(self):
        self.layer = {layer}

    def __call__(self, x):
        return self.layer(x) * self.layer.{field}
"""


@pytest.mark.parametrize(
    ("layer", "field", "attribute"),
    [
        ("nn.Dense(self.n)", "features", "out_features"),
        ("nn.Conv(self.n, (3,))", "features", "out_features"),
        ("nn.Embed(5, self.n)", "features", "features"),
        ("nn.Dropout(0.5, deterministic=True)", "rate", "rate"),
    ],
)
def test_a_field_is_read_under_its_name_in_nnx(layer: str, field: str, attribute: str) -> None:
    text = converted(MODEL.format(layer=layer, field=field))
    assert f"self.layer(x) * self.layer.{attribute}\n" in text


def test_a_field_of_a_local_layer_is_read_under_its_name_in_nnx() -> None:
    text = converted(
        """\
        class M(nn.Module):
            @nn.compact
            def __call__(self, x):
                layer = nn.Dense(3)
                return layer(x) * layer.features
        """
    )
    assert "layer(x) * layer.out_features" in text


@pytest.mark.parametrize(
    ("layer", "field"),
    [
        ("nn.Dense(self.n)", "kernel_init"),
        ("nn.Conv(self.n, 3)", "kernel_size"),
        ("nn.Dense(self.n)", "name"),
        ("nn.Embed(5, self.n)", "embedding_init"),
    ],
)
def test_a_field_that_nnx_may_not_keep_is_refused(layer: str, field: str) -> None:
    found = refusal(MODEL.format(layer=layer, field=field))
    assert field in found.reason


def test_a_converted_module_reads_the_same_number() -> None:
    x = jnp.ones((2, 3))
    layer = nn.Dense(4)
    ours = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
    assert layer.features == ours.out_features == jax.eval_shape(ours, x).shape[-1]


LISTED = """\
class M(nn.Module):
    def setup(self):
        self.layers = [nn.Dense(4), nn.Dense(4)]
        {setup}

    def __call__(self, x):
        {call}
        return x
"""


@pytest.mark.parametrize(
    ("setup", "call"),
    [
        ("pass", "for one in self.layers: x = one(x) / one.features"),
        ("pass", "x = self.layers[1](self.layers[0](x)) / self.layers[0].features"),
        (
            "pass",
            "for i, one in enumerate(self.layers): x = one(x) * one.variables['params']['bias']",
        ),
        ("pass", "for one in self.layers: x = one(x) * len(one.name)"),
        (
            "self.widths = [one.features for one in self.layers]",
            "for one in self.layers: x = one(x)",
        ),
    ],
)
def test_a_field_of_one_of_several_layers_is_refused(setup: str, call: str) -> None:
    reason = refusal(LISTED.format(setup=setup, call=call)).reason
    assert "one of several" in reason


@pytest.mark.parametrize(
    "call",
    [
        "for one in self.layers: x = one(x) * one.use_bias",
        "for one in self.layers: x = one(x) * x.ndim",
        "for one, size in zip(self.layers, (x.shape, x.shape)): x = one(x) * size.index(4)",
    ],
)
def test_what_layers_of_nnx_have_too_is_read(call: str) -> None:
    assert "class M(nnx.Module)" in converted(LISTED.format(setup="pass", call=call))
