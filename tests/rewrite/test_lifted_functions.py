"""Local functions that build submodules and that a transformation runs on the module itself."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from tests.rewrite.running import compare, migrated, module_of, refused

HEADER = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(x.shape[-1])(nn.tanh(nn.Dense(self.width)(x)))


class Drop(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dropout(0.5, deterministic=False)(nn.Dense(6)(x))


class Model(nn.Module):
    depth: int = 3
    wide: bool = False

    @nn.compact
    def __call__(self, x):
"""
STACK = "variable_axes={'params': 0}, split_rngs={'params': True, 'dropout': True}"
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
STEPS = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
SAME = ("identical", "equal_by_rules")

CASES: dict[str, tuple[str, dict[str, Any], np.ndarray[Any, Any], dict[str, Any]]] = {
    "a scan over layers": (
        f"""\
        def body(mdl, c, _):
            h = nn.LayerNorm()(c)
            return c + Block(self.depth + 5, name="block")(h), c.sum()

        return nn.scan(body, {STACK}, length=self.depth)(self, x, None)
""",
        {"in_features": 6},
        X,
        {},
    ),
    "a scan whose function does not name the module": (
        f"""\
        width = 7
        def body(_, c):
            first = Block(width)
            return Block(width)(first(c)), ()

        y, _ = nn.scan(body, {STACK}, length=2)(self, x)
        return y
""",
        {"in_features": 6},
        X,
        {},
    ),
    "a scan over time, one set of parameters": (
        """\
        def step(mdl, c, x):
            return nn.tanh(nn.Dense(6, name="mix")(c) + x), nn.Dense(3)(x)

        c, ys = nn.scan(step, variable_broadcast="params", split_rngs={"params": False})(self, x[0], x)
        return nn.Dense(2)(ys), c
""",
        {"x_0_features": 6, "x_features": 6},
        STEPS,
        {},
    ),
    "a layer for each row": (
        f"""\
        def row(mdl, x):
            return nn.Dense(5)(x)

        return nn.vmap(row, {STACK})(self, x)
""",
        {"x_shape": X.shape},
        X,
        {},
    ),
    "a scan with masks of its own": (
        f"""\
        def body(mdl, c, _):
            return Drop()(c), ()

        return nn.scan(body, {STACK}, length=3)(self, x, None)[0]
""",
        {"in_features": 6},
        X,
        {"rngs": {"dropout": 1}},
    ),
    "remat between other layers": (
        """\
        x = nn.Dense(4)(x)
        def inner(m, h):
            return nn.Dense(3)(Block(8)(h))

        y = nn.relu(nn.remat(inner)(self, x))
        return nn.Dense(2)(y)
""",
        {"in_features": 6},
        X,
        {},
    ),
}
SEEDED = [name for name in CASES if name not in ("jit", "a layer for each row")]


@pytest.mark.parametrize(("body", "sizes", "x", "options"), CASES.values(), ids=CASES)
def test_paths_values_outputs_and_gradients_are_linens(
    body: str, sizes: dict[str, Any], x: np.ndarray[Any, Any], options: dict[str, Any]
) -> None:
    report = compare(HEADER + body, "Model()", sizes, (x,), **options)
    assert report.verdict in SAME, report.to_json()


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_gives_linens_values(name: str) -> None:
    body, sizes, x, _ = CASES[name]
    source = HEADER + body
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        key = jax.random.key(3)
        build = jax.jit(lambda key: nnm.variables_of(nnm.build(new.Model, **sizes, rngs=key)))
        linen = jax.jit(old.Model().init)({"params": key, "dropout": key}, x)["params"]
        assert jax.tree.leaves(linen)
        jax.tree.map(np.testing.assert_array_equal, build(key)["params"], linen)


REFUSED: dict[str, tuple[str, str]] = {
    "called alone, too": (
        """\
        def f(m, h):
            return nn.Dense(3)(h)

        return nn.remat(f)(self, x) + f(self, x)
""",
        "inside the local function f",
    ),
    "run twice": (
        """\
        def f(m, h):
            return nn.Dense(6)(h)

        lifted = nn.remat(f)
        return lifted(self, lifted(self, x))
""",
        "its path below an attribute is not known",
    ),
    "run in a branch": (
        """\
        def f(m, h):
            return nn.Dense(6)(h)

        if self.wide:
            x = nn.remat(f)(self, x)
        return x
""",
        "inside the local function f",
    ),
    "run under a conditional expression": (
        """\
        def f(m, h):
            return nn.Dense(6)(h)

        return nn.remat(f)(self, x) if self.wide else x
""",
        "inside the local function f",
    ),
    "run after a possible return": (
        """\
        def f(m, h):
            return nn.Dense(6)(h)

        if self.wide:
            return x
        return nn.remat(f)(self, x)
""",
        "inside the local function f",
    ),
    "bound again": (
        """\
        def f(m, h):
            return nn.Dense(6)(h)

        f = nn.tanh
        return nn.remat(f)(self, x)
""",
        "Dense is built where NNX cannot build it",
    ),
    "another module": (
        """\
        def f(m, h):
            return nn.Dense(6)(m(h))

        return nn.remat(f)(Block(3), x)
""",
        "inside the local function f",
    ),
    "a module that the function binds again": (
        """\
        def f(m, h):
            m = m.clone()
            return nn.Dense(6)(h)

        return nn.remat(f)(self, x)
""",
        "inside the local function f",
    ),
    "a module that an import of the function hides": (
        """\
        def f(m, h):
            import math as m
            return nn.Dense(6)(h)

        return nn.remat(f)(self, x)
""",
        "inside the local function f",
    ),
    "a branch inside": (
        """\
        def f(m, h):
            if self.wide:
                h = nn.Dense(6)(h)
            return h

        return nn.remat(f)(self, x)
""",
        "may come by without it",
    ),
    "a loop inside": (
        """\
        def f(m, h):
            for _ in range(self.depth):
                h = nn.Dense(6)(h)
            return h

        return nn.remat(f)(self, x)
""",
        "may come by without it",
    ),
    "a function inside": (
        """\
        def f(m, h):
            def g(h):
                return nn.Dense(6)(h)

            return g(h)

        return nn.remat(f)(self, x)
""",
        "may come by without it",
    ),
    "called inside under a condition": (
        """\
        def f(m, h):
            layer = nn.Dense(6)
            return layer(h) if self.wide else h

        return nn.remat(f)(self, x)
""",
        "called only under a condition",
    ),
    "built with a local of the function": (
        """\
        def f(m, h):
            width = len(h)
            return nn.Dense(int(jnp.sum(h)))(h)

        return nn.remat(f)(self, x)
""",
        "of the function that a transformation runs",
    ),
    "something built between the function and its call": (
        """\
        def f(m, h):
            return nn.Dense(6)(h)

        x = nn.Dense(6)(x)
        return nn.remat(f)(self, x)
""",
        "inside the local function f",
    ),
    "something built where it is called": (
        """\
        def f(m, h):
            return nn.Dense(6)(h)

        return nn.remat(f)(self, nn.Dense(6)(x))
""",
        "inside the local function f",
    ),
    "a parameter of the module it is given": (
        """\
        def f(m, h):
            return nn.Dense(6)(h) * m.param("scale", nn.initializers.ones, (1, 6))

        return nn.remat(f)(self, x)
""",
        "calls m.param",
    ),
    "a parameter of the module around it": (
        """\
        def f(m, h):
            return nn.Dense(6)(h) * self.param("scale", nn.initializers.ones, (1, 6))

        return nn.remat(f)(self, x)
""",
        "inside the local function f",
    ),
    "a wrapper around layers": (
        """\
        def f(m, h):
            return nn.Sequential([nn.Dense(6), nn.tanh])(h)

        return nn.remat(f)(self, x)
""",
        "inside the local function f",
    ),
    "a lambda": (
        "        return nn.remat(lambda m, h: nn.Dense(6)(h))(self, x)\n",
        "inside a lambda",
    ),
    "a decorated function": (
        """\
        @jax.named_call
        def f(m, h):
            return nn.Dense(6)(h)

        return nn.remat(f)(self, x)
""",
        "inside the local function f",
    ),
    "a default that is evaluated before": (
        """\
        def f(m, h=nn.Dense(6)):
            return h(x)

        return nn.remat(f)(self)
""",
        "inside the local function f",
    ),
    "another function of that name": (
        """\
        def f(m, h):
            return nn.Dense(6)(h)

        def f(m, h):
            return nn.Dense(3)(h)

        return nn.remat(f)(self, x)
""",
        "Dense is built where NNX cannot build it",
    ),
}


@pytest.mark.parametrize(("body", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_function_that_may_build_otherwise_is_refused(body: str, reason: str) -> None:
    assert reason in refused(HEADER + body)
