"""A submodule taken apart by ``unbind`` for raw jax loops, or refused."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.running import migrated, module_of, refused

HEADER = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Step(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.tanh(nn.Dense(self.width)(x))
        return nn.Dropout(0.5)(x, deterministic=not train)


class Model(nn.Module):
    width: int

    def setup(self):
        self.step = Step(self.width)
        self.steps = [Step(self.width), Step(self.width)]

    def __call__(self, x):
        for step in (self.step, *self.steps):
            x = step(x)
"""
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
TWO = """\
        one, values = self.step.unbind()
        y = one.apply(values, x)
        keys = jax.random.split(jax.random.key(0), 3)
        z = jax.vmap(lambda key: one.apply(values, x, train=True, rngs={"dropout": key}))(keys)
        return y + one.apply(jax.tree.map(lambda v: 2 * v, values), x), z
"""


def test_pure_calls_of_the_module_are_linens_with_other_values_and_keys_too() -> None:
    with (
        module_of("old", HEADER + TWO) as old,
        module_of("new", migrated(HEADER + TWO)) as new,
    ):
        model = new.Model(6, in_features=6, rngs=nnx.Rngs(0))
        ours = jax.jit(lambda v, x: nnm.apply(model, v, x))(nnm.variables_of(model), X)
        theirs = jax.jit(old.Model(6).apply)(nnm.variables_of(model), X)
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert (ours[1] == 0).any()  # masks drawn from the keys given
    text = migrated(HEADER + TWO)
    assert "one, values = nnm.unbind(self.step)" in text
    assert 'nnm.apply(one, values, x, train=True, rngs={"dropout": key})' in text


@pytest.mark.parametrize(
    "body",
    [
        "        one, values = self.step.unbind()\n        return one.bind(values)(x)\n",
        "        one, values = self.step.unbind()\n        return helper(one, values, x)\n",
        "        one = self.step.unbind()\n        return one[0].apply(one[1], x)\n",
        "        one, values = self.steps[0].unbind()\n        return one.apply(values, x)\n",
        "        one, values = self.unbind()\n        return one.apply(values, x)\n",
    ],
    ids=["bound again", "handed on", "as one value", "of a list", "of itself"],
)
def test_refused(body: str) -> None:
    assert "bind" in refused(HEADER + body)
