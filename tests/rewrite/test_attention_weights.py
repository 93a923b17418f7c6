"""Attention whose weights are sown where nothing keeps them: Linen drops them."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return ATTENTION


def main():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    variables = Net().init(jax.random.key(0), x)
    print(jax.tree.map(lambda one: (one.shape, float(one.sum())), variables))
    print(Net().apply({"params": variables["params"]}, x))
    print(Net().apply(variables, x))
    print(Net().apply(variables, x, mutable=["intermediates"]))
"""


@pytest.mark.parametrize(
    "attention",
    [
        "nn.MultiHeadDotProductAttention(2)(x, x, sow_weights=True)",
        "nn.SelfAttention(1)(x, sow_weights=True)",
        "nn.dot_product_attention(*3 * (nn.Dense(4)(x)[:, :, None],), module=self)",
    ],
)
def test_calls_without_mutable_collections_keep_none(attention: str) -> None:
    printed_alike(SOURCE.replace("ATTENTION", attention))
