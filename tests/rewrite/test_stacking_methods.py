"""Methods that a lift decorates, and lifts that do not say how many layers: rewritten and compared."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from tests.rewrite.running import compare, migrated, module_of, refused

HEADER = """\
from functools import partial
import flax.linen as nn
import jax.numpy as jnp


class Leaf(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


class Drawn(nn.Module):
    def setup(self):
        self.scale = self.param("scale", nn.initializers.normal(1.0), (1, 6))
        self.dense = nn.Dense(3)

    def __call__(self, x):
        return self.dense(x * self.scale)


class Norm(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.BatchNorm(use_running_average=False)(nn.Dense(4)(x))


class Nest(nn.Module):
    inner: nn.Module

    @nn.compact
    def __call__(self, x):
        return self.inner(x)


class Outer(nn.Module):
    inner: nn.Module

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(self.inner(x))


class Over(nn.Module):
    one: nn.Module
    other: nn.Module

    @partial(nn.vmap, variable_axes={"params": 0, "batch_stats": 0}, split_rngs={"params": True})
    @nn.compact
    def __call__(self, x):
        return self.other(x) + self.one(x)


class Paired(nn.Module):
    one: nn.Module

    @partial(nn.vmap, variable_axes={"params": 1}, split_rngs={"params": False}, in_axes=1, out_axes=1)
    @nn.compact
    def __call__(self, x):
        return self.one(x)


class Stepped(nn.Module):
    one: nn.Module

    @partial(nn.scan, variable_axes={"params": 0}, split_rngs={"params": True})
    @nn.compact
    def __call__(self, carry, x):
        return self.one(carry), carry * x


"""
X = np.random.default_rng(0).normal(size=(4, 2, 6)).astype(np.float32)
STATS = {"collections": ("batch_stats",)}
SAME = ("identical", "equal_by_rules")

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "modules of the one who builds the method's class": (
        """\
        a, b = Leaf(), Leaf()
        return Over(a, Nest(b))(x)
""",
        {"x_shape": X.shape},
        {},
    ),
    "one that holds a module and builds one itself": (
        """\
        return Over(Leaf(2), Outer(Leaf(5)))(x)
""",
        {"x_shape": X.shape},
        {},
    ),
    "one with setup and parameters": (
        """\
        a = Drawn()
        return Over(a, a)(x)
""",
        {"x_shape": X.shape},
        {},
    ),
    "running statistics": (
        """\
        return Over(Norm(), Norm())(x)
""",
        {"x_shape": X.shape},
        STATS,
    ),
    "one module in two methods": (
        """\
        a = Leaf(6)
        return Over(a, a, name="first")(Over(Nest(a), a)(x))
""",
        {"x_shape": X.shape},
        {},
    ),
    "other axes, the same keys": (
        """\
        return Paired(Leaf(5))(x)
""",
        {"x_shape": X.shape, "Leaf_0_in_features": 6},
        {},
    ),
    "a scan": (
        """\
        a = Leaf(6)
        return Stepped(a)(x[0], x)
""",
        {"x_shape": X.shape, "x_0_features": 6},
        {},
    ),
    "what the class itself builds": (
        """\
        return Set(Leaf(3))(x)
""",
        {"in_features": 6},
        {},
    ),
    "a lifted class, by the rows of the input": (
        """\
        y = nn.vmap(Leaf, variable_axes={"params": 0}, split_rngs={"params": True})(5)(x)
        Dense = nn.vmap(nn.Dense, variable_axes={"params": 1}, split_rngs={"params": True}, in_axes=1)
        return y, Dense(4, name="heads")(x)
""",
        {"x_shape": X.shape, "heads_in_features": 6},
        {},
    ),
    "a lifted function, by the rows of the input": (
        """\
        leaf = Leaf(5)
        return nn.vmap(lambda m, x: m(x), variable_axes={"params": 0}, split_rngs={"params": True})(leaf, x)
""",
        {"x_shape": X.shape},
        {},
    ),
    "a scanned class, by the steps of the input": (
        """\
        layers = nn.scan(Layer, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=1)
        return layers()(x[:, 0], x)
""",
        {"x_shape": X.shape, "ScanLayer_0_in_features": 6},
        {},
    ),
}
MORE = """\
class Set(nn.Module):
    one: nn.Module

    @partial(nn.vmap, variable_axes={"params": 0}, split_rngs={"params": True}, axis_size=4)
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(self.one(x)) * nn.Dense(2, name="gate")(x)


class Layer(nn.Module):
    @nn.compact
    def __call__(self, carry, x):
        return nn.tanh(nn.Dense(6)(carry)) + x, x.sum()


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
"""


@pytest.mark.parametrize(("body", "sizes", "options"), CASES.values(), ids=CASES)
def test_paths_values_outputs_gradients_and_state_are_linens(
    body: str, sizes: dict[str, Any], options: dict[str, Any]
) -> None:
    report = compare(HEADER + MORE + body, "Model()", sizes, (X,), **options)
    assert report.verdict in SAME, report.to_json()


@pytest.mark.parametrize(("body", "sizes", "options"), CASES.values(), ids=CASES)
def test_a_seed_gives_linens_values(
    body: str, sizes: dict[str, Any], options: dict[str, Any]
) -> None:
    source = HEADER + MORE + body
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        key = jax.random.key(3)
        build = jax.jit(lambda key: nnm.variables_of(nnm.build(new.Model, **sizes, rngs=key)))
        linen = jax.jit(old.Model().init)(key, X)["params"]
        assert jax.tree.leaves(linen)
        jax.tree.map(np.testing.assert_array_equal, build(key)["params"], linen)


REFUSED: dict[str, tuple[str, str]] = {
    "called alone, too": (
        """\
        a = Leaf(6)
        return Over(a, a)(x) + a(x)
""",
        "in a lifted function that stacks its variables, and elsewhere",
    ),
    "called alone in a branch": (
        """\
        a = Leaf(6)
        y = Over(a, a)(x)
        return a(y) if self.twice else y
""",
        "in a lifted function that stacks its variables, and elsewhere",
    ),
    "stacked by methods of two classes": (
        """\
        a = Leaf(6)
        return Over(a, a)(x) + Paired(a)(x)
""",
        "in a lifted function that stacks its variables, and elsewhere",
    ),
    "stacked twice": (
        """\
        return Sure(Sure(Leaf()))(x[None])
""",
        "lifts stack its variables twice",
    ),
    "lifted without a number, and stacked": (
        """\
        a = nn.vmap(Leaf, variable_axes={"params": 0}, split_rngs={"params": True})(6)
        return Over(a, a)(x[None])
""",
        "lifts stack its variables twice",
    ),
    "a number that the calls contradict": (
        """\
        a = nn.vmap(Leaf, variable_axes={"params": 0}, split_rngs={"params": True})(6)
        return a(x) + a(flag)
""",
        "no call shows how many layers",
    ),
    "a number of what nobody knows": (
        """\
        a = nn.vmap(Leaf, variable_axes={"params": 0}, split_rngs={"params": True})(6)
        return a(jnp.asarray(sorted(x)))
""",
        "no call shows how many layers",
    ),
    "a call that depends on an argument": (
        """\
        a = nn.vmap(Leaf, variable_axes={"params": 0}, split_rngs={"params": True})(6)
        return a(x) if flag else x
""",
        "no call shows how many layers",
    ),
    "options that another module of names has": (
        """\
        return Named(Leaf(6))(x)
""",
        "by options that are no literals",
    ),
    "a field that is called like the number": (
        """\
        return nn.vmap(Sized, variable_axes={"params": 0})(6)(x)
""",
        "a field 'stacked_size' of its own",
    ),
    "parameters of the class itself": (
        """\
        return x


class Model(nn.Module):
    @partial(nn.vmap, variable_axes={"params": 0}, axis_size=4)
    @nn.compact
    def __call__(self, x):
        return x * self.param("scale", nn.initializers.ones, (6,))
""",
        "stacks variables of the class itself",
    ),
    "setup": (
        """\
        return x


class Model(nn.Module):
    def setup(self):
        self.dense = nn.Dense(3)

    @partial(nn.vmap, variable_axes={"params": 0}, axis_size=4)
    def __call__(self, x):
        return self.dense(x)
""",
        "of what setup makes",
    ),
    "an inherited setup": (
        """\
        return x


class Base(nn.Module):
    def setup(self):
        self.dense = nn.Dense(3)


class Model(Base):
    @partial(nn.vmap, variable_axes={"params": 0}, axis_size=4)
    def __call__(self, x):
        return self.dense(x)
""",
        "of what setup makes",
    ),
    "another method": (
        """\
        return x


class Model(nn.Module):
    def __call__(self, x):
        return self.inside(x)

    @partial(nn.vmap, variable_axes={"params": 0}, axis_size=4)
    @nn.compact
    def inside(self, x):
        return nn.Dense(3)(x)
""",
        "a method other than __call__",
    ),
    "no number of what the class itself builds": (
        """\
        return x


class Model(nn.Module):
    @partial(nn.vmap, variable_axes={"params": 0})
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
""",
        "no call shows how many layers",
    ),
    "two lifts of one method": (
        """\
        return x


class Model(nn.Module):
    @partial(nn.vmap, variable_axes={"params": 0}, axis_size=4)
    @partial(nn.vmap, variable_axes={"params": 0}, axis_size=2)
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
""",
        "several lifts",
    ),
    "metadata of the user's own boxes": (
        """\
        return nn.vmap(Leaf, variable_axes={"params": 0}, metadata_params={"size": 4})(6)(x)
""",
        "metadata_params of other keys",
    ),
}
OTHERS = """\
class Sized(nn.Module):
    stacked_size: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.stacked_size)(x)


class Sure(nn.Module):
    one: nn.Module

    @partial(nn.vmap, variable_axes={"params": 0}, split_rngs={"params": True}, axis_size=1)
    @nn.compact
    def __call__(self, x):
        return self.one(x)


AXES = {"params": 0}


class Named(nn.Module):
    one: nn.Module

    @partial(nn.vmap, variable_axes=AXES)
    @nn.compact
    def __call__(self, x):
        return self.one(x)


class Model(nn.Module):
    twice: bool = False

    @nn.compact
    def __call__(self, x, flag=False):
"""


@pytest.mark.parametrize(("body", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_may_stack_otherwise_is_refused(body: str, reason: str) -> None:
    model = OTHERS if "class Model" not in body else OTHERS.replace("class Model", "class Unused")
    assert reason in refused(HEADER + model + body)
