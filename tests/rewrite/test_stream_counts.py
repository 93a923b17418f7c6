"""Which keys a call draws: Linen counts the draws of a module by the stream whose key they come from."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

HEAD = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


def bits(key):
    return jax.random.key_data(key).astype(jnp.float32) / 7
"""
MANY = """

class Model(nn.Module):
    steps: int

    @nn.compact
    def __call__(self, x):
        drop = nn.Dropout(0.5, deterministic=False)
        for _ in range(self.steps):
            x = x + drop(jnp.ones((8, 8)))
        return nn.Dense(2)(x), bits(self.make_rng("noise"))


def main():
    x, key = jnp.ones((8, 8)), jax.random.key
    for steps in (62, 63, 64, 130):
        model = Model(steps)
        variables = model.init({"params": key(0), "dropout": key(1), "noise": key(2)}, x)
        for run in (model.apply, jax.jit(model.apply)):
            print(run(variables, x, rngs={"dropout": key(3), "noise": key(4)}))
"""
FALLING_BACK = """

class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _=None):
        x = nn.Dense(4)(x)
        one, two = bits(self.make_rng("noise")), bits(self.make_rng("extra"))
        return x, jnp.stack([one, two, bits(self.make_rng("params")), bits(self.make_rng("noise"))])


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x, first = {block}
        return x, first, bits(self.make_rng("noise")), bits(self.make_rng("extra"))


def main():
    x, key = jnp.ones((2, 4)), jax.random.key
    model = Model()
    variables = model.init(key(0), x)
    given = [key(5), {{"params": key(5), "noise": key(6)}}, {{"params": key(5), "extra": key(6)}}]
    given.append({{"params": key(1), "extra": key(2), "noise": key(3)}})
    for rngs in given:
        print(model.apply(variables, x, rngs=rngs)[1:])
"""
LIFTED = 'variable_axes={{"params": 0}}, split_rngs={{"params": {0}, "noise": {1}, "extra": True}}'
BLOCKS = [
    "Block()(x)",
    "nn.remat(Block)()(x)",
    *(
        f"nn.scan(Block, length=3, {LIFTED.format(*split)})()(x, None)"
        for split in ((True, True), (True, False))
    ),
    f"nn.vmap(Block, in_axes=None, axis_size=2, {LIFTED.format(True, False)})()(x)",
]


def test_a_draw_of_any_number_has_linens_key() -> None:
    assert printed_alike(HEAD + MANY) == {"m.Model": "explicit"}


@pytest.mark.parametrize("block", BLOCKS)
def test_streams_without_a_key_of_their_own_count_together(block: str) -> None:
    found = printed_alike(HEAD + FALLING_BACK.format(block=block))
    assert found == {"m.Block": "explicit", "m.Model": "explicit"}
