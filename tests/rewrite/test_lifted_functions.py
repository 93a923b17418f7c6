"""Local functions that build submodules and that a transformation runs on the module: their class is lazy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite.running import lazy, same_in_auto

HEADER = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(x.shape[-1])(nn.tanh(nn.Dense(self.width)(x)))


class Model(nn.Module):
    depth: int = 3

    @nn.compact
    def __call__(self, x):
"""
STACK = "variable_axes={'params': 0}, split_rngs={'params': True}"
X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)

CASES = {
    "a scan over layers": f"""\
        def body(mdl, c, _):
            h = nn.LayerNorm()(c)
            return c + Block(self.depth + 5, name="block")(h), c.sum()

        return nn.scan(body, {STACK}, length=self.depth)(self, x, None)
""",
    "a scan whose function does not name the module": f"""\
        width = 7
        def body(_, c):
            first = Block(width)
            return Block(width)(first(c)), ()

        y, _ = nn.scan(body, {STACK}, length=2)(self, x)
        return y
""",
    "a scan over time, one set of parameters": """\
        def step(mdl, c, x):
            return nn.tanh(nn.Dense(6, name="mix")(c) + x), nn.Dense(3)(x)

        c, ys = nn.scan(step, variable_broadcast="params", split_rngs={"params": False})(self, x[0], x)
        return nn.Dense(2)(ys), c
""",
    "a layer for each row": f"""\
        def row(mdl, x):
            return nn.Dense(5)(x)

        return nn.vmap(row, {STACK})(self, x)
""",
    "remat between other layers": """\
        x = nn.Dense(4)(x)
        def inner(m, h):
            return nn.Dense(3)(Block(8)(h))

        y = nn.relu(nn.remat(inner)(self, x))
        return nn.Dense(2)(y)
""",
    "a layer with a name": """\
        def f(m, h):
            return nn.Dense(3, name="shared")(h)

        return nn.remat(f)(self, x)
""",
}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES)
def test_its_class_is_lazy_and_runs_as_before(body: str) -> None:
    source = HEADER + body
    assert lazy(source, "Model")
    variables = same_in_auto(source, "Model()", X)
    assert variables["params"]
