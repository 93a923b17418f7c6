"""State that Linen's ``init`` moves starts, on request, where Linen's does."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from tests.rewrite.classes.support import converted, loaded

COMPACT = """\
class M(nn.Module):
    decay: float = 0.5

    @nn.compact
    def __call__(self, x, train=True):
        mean = self.variable("stats", "mean", jnp.zeros, (4,))
        steps = self.variable("stats", "steps", jnp.zeros, ())
        x = nn.Dense(4)(x)
        if train:
            mean.value = self.decay * mean.value + jnp.mean(x, axis=0)
        steps.value += 1
        return x - mean.value[None]
"""
TWICE = COMPACT.replace(
    "        x = nn.Dense", "        mean.value = mean.value + 1\n        x = nn.Dense"
)
SETUP = """\
class M(nn.Module):
    def setup(self):
        self.mean = self.variable("stats", "mean", jnp.zeros, (4,))
        self.dense = nn.Dense(4)

    def __call__(self, x, train=True):
        x = self.dense(x)
        self.mean.value = jnp.mean(x, axis=0) if train else self.mean.value
        return x - self.mean.value[None]
"""
GUARDED = """\
class M(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        mean = self.variable("stats", "mean", jnp.zeros, (4,))
        starting = self.is_initializing()
        x = nn.Dense(4)(x)
        if not starting:
            mean.value = mean.value + jnp.mean(x, axis=0)
        return x - mean.value[None]
"""
ELSEWHERE = """\
class M(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        mean = self.variable("stats", "mean", jnp.zeros, (4,))
        x = nn.Dense(4)(x)
        if train:
            self.move(mean, x)
        return x - mean.value[None]

    def move(self, state, x):
        if not self.is_initializing():
            state.value = jnp.mean(x, axis=0)
"""
X = jnp.arange(8.0).reshape(2, 4)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(
    "source", [COMPACT, TWICE, SETUP, GUARDED], ids=["compact", "twice", "setup", "guarded"]
)
def test_state_starts_and_moves_as_in_linen(source: str, train: bool) -> None:
    with (
        loaded(source, "updates_before") as before,
        loaded(converted(source), "updates_after") as after,
    ):
        variables = before.M().init(jax.random.key(0), X, train)
        made = nnm.build(after.M, in_features=4, rngs=jax.random.key(0))
        shown = nnm.variables_of(made, X, train)["stats"]
        nnm.lazy_init(made, X, train)
        started = nnm.variables_of(made)["stats"]
        _, moved = before.M().apply(variables, X, train, mutable=["stats"])
        made(X, train)
        now = nnm.variables_of(made)["stats"]
    for name, value in variables["stats"].items():
        np.testing.assert_allclose(started[name], value, rtol=1e-6)
        np.testing.assert_allclose(shown[name], value, rtol=1e-6)
        np.testing.assert_allclose(now[name], moved["stats"][name], rtol=1e-6)


@pytest.mark.parametrize(
    ("source", "marked"),
    [(COMPACT, 2), (TWICE, 2), (SETUP, 1), (GUARDED, 0), (ELSEWHERE, 0)],
)
def test_what_may_ask_whether_init_runs_is_not_marked(source: str, marked: int) -> None:
    assert converted(source).count("moved_by_init=True") == marked


def test_a_variable_that_only_another_method_moves_stays_where_it_starts() -> None:
    source = SETUP.replace("if train else self.mean.value", "") + (
        "\n    def reset(self):\n        self.other.value = jnp.ones(4)\n"
    )
    source = source.replace(
        "        self.dense",
        '        self.other = self.variable("stats", "b", jnp.zeros, (4,))\n        self.dense',
    )
    with loaded(converted(source), "updates_after") as after:
        made = nnm.build(after.M, in_features=4, rngs=jax.random.key(0))
        nnm.lazy_init(made, X)
    np.testing.assert_array_equal(made.other[...], jnp.zeros(4))
    assert np.any(made.mean[...] != 0)
