"""Whole modules with jit, cond, switch, while_loop, vjp and the like: rewritten, run, compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.rewrite.running import compare, refused

HEADER = """\
from functools import partial
import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


class Counting(nn.Module):
    @nn.compact
    def __call__(self, x, deterministic=False):
        seen = self.variable("state", "seen", jnp.zeros, ())
        if not self.is_initializing():
            seen.value = seen.value + x.sum()
        scale = self.param("scale", nn.initializers.normal(1.0), (1, 6))
        return nn.Dropout(0.5)(x * scale, deterministic=deterministic) + seen.value


class Two(nn.Module):
    width: int

    def setup(self):
        self.first = nn.Dense(self.width)
        self.second = nn.Dense(6)

    def up(self, x):
        return nn.relu(self.first(x))

    def down(self, y):
        return self.second(y)

    def __call__(self, x):
        return self.down(self.up(x))


"""
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
STATE = {"rngs": {"dropout": 1}, "collections": ("state",)}

CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "remat of chosen methods": (
        """\
class Model(nn.Module):
    def setup(self):
        self.layer = nn.remat(Two, methods=("up", "down"))(4)

    def __call__(self, x):
        return self.layer.down(self.layer.up(x))
""",
        "Model()",
        {"in_features": 6},
        {},
    ),
    "remat of functions of a submodule": (
        """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        def run(m, x):
            return m(x) * 2

        block = Block(6)
        return nn.remat(run)(block, nn.remat(lambda m, x: m(x))(block, x))
""",
        "Model()",
        {"in_features": 6},
        {},
    ),
    "built-in layers": (
        """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.remat(nn.Dense)(4, use_bias=False)(x)
        heads = nn.vmap(partial(nn.Dense, use_bias=False), variable_axes={"params": 0},
                        split_rngs={"params": True}, in_axes=None, axis_size=3)
        return heads(4)(x), heads(2, name="last")(x)
""",
        "Model()",
        {"in_features": 6},
        {},
    ),
    "a built-in cell over time": (
        """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        cell = nn.scan(nn.LSTMCell, variable_broadcast="params", split_rngs={"params": False},
                       in_axes=1, out_axes=1)(3)
        xs = jnp.stack([x, -x, x * 2], 1)
        carry = cell.initialize_carry(jax.random.key(0), (2, 6))
        return cell(carry, xs)
""",
        "Model()",
        {"ScanLSTMCell_0_in_features": 6},
        {},
    ),
    "vmap and scan of methods and functions that share their module": (
        """\
class Shared(nn.Module):
    @partial(nn.vmap, in_axes=(0, None), variable_axes={"params": None},
             split_rngs={"params": False})
    @nn.compact
    def __call__(self, x, y):
        return nn.Dense(3)(x * y)


class Steps(nn.Module):
    @partial(nn.scan, variable_broadcast="params", in_axes=(nn.broadcast, 0),
             split_rngs={"params": False})
    @nn.compact
    def __call__(self, carry, whole, x):
        return carry + 1, nn.Dense(2)(x * whole)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        block = Block(6)
        y = nn.vmap(lambda m, x: m(x), variable_axes={"params": None}, split_rngs={"params": False},
                    out_axes=1)(block, block(x))
        return Shared()(x, 2.0), Steps()(0, 3.0, x), y
""",
        "Model()",
        {"in_features": 6},
        {},
    ),
}


@pytest.mark.parametrize(("source", "model", "sizes", "options"), CASES.values(), ids=CASES)
def test_the_rewritten_model_is_at_parity(
    source: str, model: str, sizes: dict[str, Any], options: dict[str, Any]
) -> None:
    report = compare(HEADER + source, model, sizes, (X,), **options)
    assert report.ok, report
    assert report.verdict in ("identical", "equal_by_rules", "numerically_equal"), report


REFUSED = {
    "a function that stacks the variables of its own module": (
        "nn.scan(lambda m, c, _: (c, ()), variable_axes={'params': 0}, length=3)(self, x, ())",
        "scan of a function stacks variables",
    ),
    "a function that stacks those of another": (
        "nn.vmap(lambda m, x: m(x), variable_axes={'params': 0}, axis_size=2, in_axes=None)(Block(3), x)",
        "vmap of a function stacks variables",
    ),
}


@pytest.mark.parametrize(("value", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_exact_is_refused(value: str, reason: str) -> None:
    model = f"""\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {value}
"""
    assert reason in refused(HEADER + model)


def test_a_class_that_extends_linens_init_is_refused() -> None:
    model = """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)

    def init_with_output(self, rngs, *args):
        return super().init_with_output(rngs, *args)
"""
    assert "it calls init_with_output of linen.Module" in refused(HEADER + model)
