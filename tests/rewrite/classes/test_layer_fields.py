"""Methods that read fields of built-in layers."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from nnx_migrate.rewrite.classes.uses.layer_fields import FIELDS
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


LINEN: dict[str, nn.Module] = {
    "Dense": nn.Dense(4, use_bias=False),
    "Conv": nn.Conv(4, (3,), use_bias=False),
    "ConvTranspose": nn.ConvTranspose(4, (3,)),
    "Embed": nn.Embed(5, 4),
    "Dropout": nn.Dropout(0.3),
    "LayerNorm": nn.LayerNorm(epsilon=1e-3, use_bias=False),
    "BatchNorm": nn.BatchNorm(momentum=0.5, use_scale=False),
}
NNX: dict[str, Any] = {
    "Dense": lambda rngs: nnx.Linear(3, 4, use_bias=False, rngs=rngs),
    "Conv": lambda rngs: nnx.Conv(3, 4, (3,), use_bias=False, rngs=rngs),
    "ConvTranspose": lambda rngs: nnx.ConvTranspose(3, 4, (3,), rngs=rngs),
    "Embed": lambda rngs: nnx.Embed(5, 4, rngs=rngs),
    "Dropout": lambda rngs: nnx.Dropout(0.3, rngs=rngs),
    "LayerNorm": lambda rngs: nnx.LayerNorm(3, epsilon=1e-3, use_bias=False, rngs=rngs),
    "BatchNorm": lambda rngs: nnx.BatchNorm(3, momentum=0.5, use_scale=False, rngs=rngs),
}


@pytest.mark.parametrize(
    ("layer", "field"), [(layer, field) for layer in FIELDS for field in FIELDS[layer]]
)
def test_the_installed_layers_agree(layer: str, field: str) -> None:
    built = NNX[layer](nnx.Rngs(0))
    assert getattr(built, FIELDS[layer][field]) == getattr(LINEN[layer], field)


def test_a_converted_module_reads_the_same_number() -> None:
    x = jnp.ones((2, 3))
    layer = nn.Dense(4)
    ours = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
    assert layer.features == ours.out_features == jax.eval_shape(ours, x).shape[-1]
