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
