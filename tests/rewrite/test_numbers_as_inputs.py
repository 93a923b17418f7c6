"""Numbers among the inputs, and those that parts of a vector are: they have no axis until one is added."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

HEAD = """
import flax.linen as nn
import jax
import jax.numpy as jnp
"""
NET = """

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        out = nn.Dense(3)
        return {result}
"""
NUMBER, VECTOR, MATRIX = "jnp.float32(2)", "jnp.arange(4.0)", "jnp.arange(12.0).reshape(4, 3)"


@pytest.mark.parametrize(
    ("result", "given"),
    [
        ("out(x[None])", NUMBER),
        ("out((jnp.sin(x) * 2)[jnp.newaxis])", NUMBER),
        ("out(jnp.expand_dims(x, 0))", NUMBER),
        ("out(x[..., None])", NUMBER),
        ("out(jnp.stack([x[0], x[2], x[0] * x[2]]))", VECTOR),
        ("out(jnp.concatenate([x[0][None], x[1:]]))", VECTOR),
        ("out(x.mean(-1)[None])", VECTOR),
        ("out(jnp.stack([x.sum(), x.std()]))", VECTOR),
        ("out(x[None])", VECTOR),
        ("jax.vmap(lambda s: out(s[None]))(x)", VECTOR),
        ("jax.vmap(lambda s: out(jnp.stack([s, s * s])))(x)", VECTOR),
        ("jax.vmap(jax.vmap(lambda s: out(s[None])))(x)", MATRIX),
        ("jax.vmap(lambda r, s: out(jnp.concatenate([r, s[None]])))(x, x[:, 0])", MATRIX),
        ("jax.vmap(lambda r: out(r * 2))(x)", MATRIX),
        ("out(jax.vmap(lambda r: r * 2)(x))", VECTOR),
        ("out(jax.vmap(lambda r, q: q + 1, in_axes=(0, None))(x, x[1]))", VECTOR),
        ("out(jax.lax.scan(lambda c, s: (c + 1, s * c), 0.0, x)[1])", VECTOR),
    ],
)
def test_a_number_gets_its_only_axis(result: str, given: str) -> None:
    assert net_alike(HEAD + NET.format(result=result), given) == {"m.Net": "explicit"}


LIFTED = """

class Point(nn.Module):
    @nn.compact
    def __call__(self, t, q):
        return nn.Dense(1)(t[None])[0] + q


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        points = nn.vmap(Point, in_axes=(0, None), variable_axes={"params": None}, split_rngs={"params": False})
        return nn.Dense(2)(points()(x, x[0]))
"""


def test_a_lifted_class_of_numbers_stacks_its_results() -> None:
    assert net_alike(HEAD + LIFTED, VECTOR)["m.Net"] == "explicit"
