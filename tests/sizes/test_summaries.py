"""Shapes of einops, jax.image, convolutions, indexed updates and partly known concatenations."""

from __future__ import annotations

import pytest

from tests.sizes.inference import LAZY, compact, in_features, sizes_of

IMPORTS = """
import einops

def heads(x):
    return jnp.swapaxes(x, -1, -2)
"""


@pytest.mark.parametrize(
    ("made", "size"),
    [
        ("einops.rearrange(nn.Dense(12)(x), 'b n (h d) -> b h n d', h=3)", "4"),
        ("einops.rearrange(nn.Dense(12)(x), '... (h d) -> ... h d', d=2)", "2"),
        ("einops.rearrange(nn.Conv(5, (1, 1))(x), 'b h w c -> b (h w) c')", "5"),
        ("einops.repeat(nn.Dense(7)(x), 'b c -> b n c', n=4)", "7"),
        ("jax.image.resize(nn.Conv(5, (1, 1))(x), (1, 8, 8, 5), 'nearest')", "5"),
        ("jax.lax.dot_general(x, jnp.zeros((3, 9)), (((x.ndim - 1,), (0,)), ((), ())))", "9"),
        ("jax.lax.dot_general(x, jnp.zeros((9, 3)), (((0,), (1,)), ((), ())))", "9"),
        ("heads(jax.lax.dot_general(x, jnp.zeros((3, 4, 6)), (((2,), (0,)), ((), ()))))", "4"),
        ("jnp.split(nn.Dense(self.a + self.b)(x), [self.a], axis=-1)[1]", "self.b"),
        ("jnp.split(nn.Dense(self.a + self.b)(x), [self.b], axis=-1)[1]", "self.a"),
        ("jnp.split(nn.Dense(self.a)(x), [self.b], axis=-1)[1]", "self.a - self.b"),
        ("nn.Dense(7)(x).at[0].set(1.0)", "7"),
        ("jnp.zeros((5, 7)).at[:, None].get(out_sharding=None)", "7"),
        ("jnp.zeros((5, 7)).at[0].get(mode='fill')", "7"),
        ("jnp.zeros((5, 7)).at[:, :3].get()", "3"),
        ("jax.sharding.reshard(nn.Dense(7)(x), None)", "7"),
        ("jnp.concatenate([jnp.zeros((1, 1, 6)), mystery(nn.Dense(2)(x))], axis=1)", "6"),
    ],
)
def test_the_last_axis_is_known(made: str, size: str) -> None:
    body = f"y = {made}\nreturn nn.Dense(3)(y)"
    found = sizes_of(compact(body, fields="a: int;b: int", before=IMPORTS))
    assert in_features(found)[-1] == size


@pytest.mark.parametrize(
    "made",
    [
        "einops.rearrange(x, pattern)",
        "einops.rearrange(nn.Dense(12)(x), 'b (n c) -> b n c', n=m)",
        "jnp.concatenate([jnp.zeros((1, 1, 6)), mystery(x)], axis=-1)",
        "x.at[0].get()",
        "jax.lax.dot_general(x, jnp.zeros((9,)), (((0,), (0,)), ((), ())))",
        "jax.lax.dot_general(x, jnp.zeros((2, 9, 3)), (((2,), (1,)), ((0,), (0,))))",
    ],
)
def test_a_last_axis_that_nobody_knows_stays_open(made: str) -> None:
    body = f"y = {made}\nfor i in range(3):\n    nn.Dense(3)(mystery(y))\nreturn y"
    found = sizes_of(compact(body, arguments="x, pattern, m", before=IMPORTS))
    assert in_features(found)[-1] == LAZY
