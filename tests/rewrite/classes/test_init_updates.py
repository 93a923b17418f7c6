"""State that Linen's ``init`` moves starts, on request, where Linen's does."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from tests.rewrite.classes.stepping import same_steps
from tests.rewrite.classes.support import converted, loaded, refusal
from tests.rewrite.running import printed_alike

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
BESIDE = """\
class Counter(nn.Module):
    def setup(self):
        self.steps = self.variable("stats", "steps", jnp.zeros, ())
        self.calls = self.variable("stats", "calls", jnp.zeros, ())

    def __call__(self, x):
        if not self.is_initializing():
            self.steps.value = self.steps.value + 2
        self.calls.value = self.calls.value + 1
        return x * (1 + self.steps.value)


class M(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        mean = self.variable("stats", "mean", jnp.zeros, ())
        mean.value = Counter()(nn.Dense(4)(x)).mean()
        return x - mean.value
"""
CACHED = """\
class M(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        ready = self.has_variable("stats", "last")
        last = self.variable("stats", "last", jnp.zeros, (2, 4))
        steps = self.variable("stats", "steps", jnp.zeros, ())
        steps.value += 1
        x = nn.Dense(4)(x)
        if ready:
            x = x + last.value
            last.value = x
        return x
"""
SHARED = (
    CACHED.replace("class M", "class Last")
    + """

class M(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        last = Last()
        return last(last(x, train))
"""
)
ASKED = """\
class M(nn.Module):
    def setup(self):
        self.mean = self.variable("stats", "mean", jnp.zeros, (4,))
        self.steps = self.variable("stats", "steps", jnp.zeros, ())
        self.dense = nn.Dense(4)

    def __call__(self, x, train=True):
        x = self.dense(x)
        if self.has_variable("stats", "mean"):
            self.mean.value = jnp.mean(x, axis=0)
        self.steps.value = self.steps.value + 1
        return x
"""
X = jnp.arange(8.0).reshape(2, 4)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(
    "source",
    [COMPACT, TWICE, SETUP, GUARDED, BESIDE, CACHED, SHARED, ASKED],
    ids=[
        "compact",
        "twice",
        "setup",
        "guarded",
        "beside",
        "cached",
        "shared",
        "asked",
    ],
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
    close = functools.partial(np.testing.assert_allclose, rtol=1e-6)
    for one in (started, shown):
        jax.tree.map(close, one, variables["stats"])
    jax.tree.map(close, now, moved["stats"])


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


HUNG = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class M(nn.Module):
{setup}
    @nn.compact
    def __call__(self, x):
        w = self.param("w", nn.initializers.ones, (4,))
        v = self.variable("stats", "v", lambda: {{"n": jnp.zeros(()), "w": jnp.ones_like(w)}})
        {update}
        if x.ndim == 2:
            x = nn.Dense(4)(x)
        return x


def main():
    x = jnp.arange(8.0).reshape(2, 4)
    variables = M().init(jax.random.key(0), x)
    out, changed = M().apply(variables, x, mutable=["stats"])
    for tree in (variables, out, changed):
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            print(jax.tree_util.keystr(path), np.asarray(leaf).tobytes().hex())


if __name__ == "__main__":
    main()
"""
HELD = """\
    def setup(self):
        self.n = self.variable("stats", "n", jnp.zeros, ())
"""


@pytest.mark.parametrize(
    ("update", "setup", "form"),
    [
        ('v.value = {"n": v.value["n"] + 1}; x = x * v.value["n"]', "", "lazy"),
        ('n = v.value["n"]; v.value = {"n": n + 1}; x = x * v.value["n"]', "", "lazy"),
        ('v.value["n"] = v.value["n"] + 1; x = x * v.value["n"]', "", "explicit"),
        ('v.value |= {"n": jnp.ones(())}; x = x * v.value["n"]', "", "explicit"),
        ('x, v.value = x * v.value["n"], {"n": v.value["n"] + 1}', "", "lazy"),
        ("self.n.value += 1; x = x * self.n.value", HELD, "explicit"),
    ],
)
def test_what_hangs_on_state_that_the_call_updates_is_never_built_with_it(
    update: str, setup: str, form: str
) -> None:
    assert printed_alike(HUNG.format(update=update, setup=setup)) == {"m.M": form}


@pytest.mark.parametrize(
    "update",
    [
        'x = x * v.value["n"]; v.value = {"n": v.value["n"] + 1, "w": w}',
        'v.value = {"n": w.sum(), "w": w}; x = x * v.value["n"]',
        'x = x * v.value["n"]',
    ],
)
def test_a_class_is_explicit_whose_shapes_hang_on_state_as_it_starts(update: str) -> None:
    assert printed_alike(HUNG.format(update=update, setup="")) == {"m.M": "explicit"}


def test_a_variable_asked_for_twice_before_it_is_made_is_refused() -> None:
    again = CACHED.replace(
        "        last =", "        again = self.has_variable('stats', 'last')\n        last ="
    )
    assert refusal(again).reason == "it asks twice for a variable that is made after it"


def test_values_that_init_sows_start_as_in_linen() -> None:
    source = """\
class M(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        x = nn.Dense(4)(x)
        if self.sow("losses", "size", x.sum()):
            self.sow("other", "size", x.mean(), reduce_fn=lambda a, b: a + b, init_fn=lambda: 1.0)
        self.sow("intermediates", "x", x)
        return x
"""
    values = same_steps(source, X, sizes={"in_features": 4}, mutable=("losses", "other"))
    assert len(values["losses"]["size"]) == 3
    same_steps(source, X, sizes={"in_features": 4})
