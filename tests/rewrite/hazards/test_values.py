"""R5, R11, R13: sown values, which variables are state, modules that stay Linen."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.running import migrated, module_of

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
SOWN = """\
import flax.linen as nn
import jax.numpy as jnp


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        x = x + nn.Dense(x.shape[-1])(x)
        self.sow("intermediates", "balance", jnp.mean(x * x))
        self.sow("losses", "penalty", jnp.sum(x), reduce_fn=lambda a, b: a + b, init_fn=lambda: 0.0)
        return x, None


class Model(nn.Module):
    depth: int

    @nn.compact
    def __call__(self, x):
        stack = nn.scan(
            Layer,
            variable_axes={"params": 0, "intermediates": 0, "losses": 0},
            split_rngs={"params": True},
            length=self.depth,
        )(name="layers")
        x, _ = stack(x, None)
        Layer(name="layers_10")(x, None)
        return Layer(name="layers_2")(x, None)[0]
"""


@pytest.fixture(scope="module")
def sown() -> Any:
    with module_of("sown_linen", SOWN) as old, module_of("sown_nnx", migrated(SOWN)) as new:
        yield old, new


def test_r5_sown_values_arrive_under_their_module_with_linens_values(sown: Any) -> None:
    old, new = sown
    names = ["intermediates", "losses"]
    variables = {"params": jax.jit(old.Model(3).init)(jax.random.key(0), X)["params"]}
    y, theirs = old.Model(3).apply(variables, X, mutable=names)
    model = new.Model(3, in_features=6, rngs=nnx.Rngs(0))
    mine, ours = nnm.apply(model, variables, X, mutable=names)
    np.testing.assert_array_equal(mine, y)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    assert set(ours["intermediates"]) == {"layers", "layers_2", "layers_10"}
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert np.all(one != 0)  # a silent zero is how this goes wrong
        np.testing.assert_array_equal(one, other)


def test_r5_sown_values_are_no_state_of_the_model(sown: Any) -> None:
    _, new = sown
    model = new.Model(3, in_features=6, rngs=nnx.Rngs(0))
    before = jax.tree.structure(nnx.state(model))
    for _ in range(2):
        model(X)
        nnx.capture(lambda model: model(X), nnx.Intermediate)(model)
    assert jax.tree.structure(nnx.state(model)) == before
    assert set(nnm.variables_of(model)) == {"params"}


STATE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Model(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Dense(4)(x)
        x = nn.BatchNorm()(x, use_running_average=not train)
        x = nn.Dropout(0.5)(x, deterministic=not train)
        last = self.variable("cache", "last", jnp.zeros, (2, 4))
        last.value = x
        amax = self.variable("quantization", "amax", jnp.ones, ())
        return x / amax.value
"""


def test_r11_state_is_told_apart_by_type_and_comes_back_whole() -> None:
    with module_of("state", migrated(STATE)) as new:
        model = new.Model(in_features=6, rngs=nnx.Rngs(0, dropout=1))
        kinds = {type(one) for _, one in nnx.to_flat_state(nnx.state(model))}
        assert {nnx.Param, nnx.BatchStat, nnx.Cache, nnx.RngKey, nnx.RngCount} <= kinds
        model(X, True)
        variables = nnm.variables_of(model)
        assert set(variables) == {"params", "batch_stats", "cache", "quantization"}
        assert (np.asarray(variables["batch_stats"]["BatchNorm_0"]["mean"]) != 0).any()

        flat, treedef = jax.tree.flatten(variables)
        restored = jax.tree.unflatten(treedef, [np.asarray(one) for one in flat])
        other = new.Model(in_features=6, rngs=nnx.Rngs(7))
        for path, value in jax.tree_util.tree_flatten_with_path(
            nnm.variables_of(nnm.bind(other, restored))
        )[0]:
            expected = jax.tree_util.tree_flatten_with_path(variables)[0]
            np.testing.assert_array_equal(value, dict(expected)[path])
        np.testing.assert_array_equal(
            nnm.bind(other, restored)(X, False), nnm.bind(model, variables)(X, False)
        )


def test_r11_a_missing_weight_is_an_error_not_its_initial_value() -> None:
    with module_of("state", migrated(STATE)) as new:
        model = new.Model(in_features=6, rngs=nnx.Rngs(0))
        variables = nnm.variables_of(model)
        del variables["params"]["Dense_0"]["bias"]
        with pytest.raises(ValueError, match="'Dense_0/bias' in collection 'params'"):
            nnm.apply(model, variables, X, False, mutable=["cache"])
