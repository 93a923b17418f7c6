"""Variables that Linen's initial call changes, or starts from a key, without regard to its inputs."""

from __future__ import annotations

import textwrap
from typing import Any

import jax
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from nnx_migrate.parity import ParityCase, check
from nnx_migrate.rewrite.classes import ConvertedClass
from tests.rewrite.classes.support import convert, converted, loaded

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)

POWER = """\
class M(nn.Module):
  steps: int = 2

  @nn.compact
  def __call__(self, x):
    kernel = self.param("kernel", nn.initializers.lecun_normal(), (x.shape[-1], 4))
    key = self.make_rng("power")
    state = self.variable("power", "u", nn.initializers.normal(), key, (1, 4))
    u = state.value
    for _ in range(self.steps):
      u = jnp.tanh(u @ kernel)
    state.value = jax.lax.stop_gradient(u)
    bias = self.param("bias", nn.initializers.normal(), (1, 4))
    return x @ kernel + u + bias
"""

# What it assigns reads no state, so it is the same however often ``init`` runs it.
NORM = """\
class M(nn.Module):
  steps: int = 2

  @nn.compact
  def __call__(self, x):
    kernel = self.param("kernel", nn.initializers.lecun_normal(), (x.shape[-1], 4))
    state = self.variable("power", "u", jnp.zeros, (1, 4))
    u = kernel.sum(axis=0, keepdims=True)
    for _ in range(self.steps):
      u = jnp.tanh(u @ kernel)
    state.value = jax.lax.stop_gradient(u)
    return x @ kernel + state.value
"""

TWICE = """\
class Outer(nn.Module):
  @nn.compact
  def __call__(self, x):
    inner = M(name="inner")
    return inner(x) + inner(x + 1)
"""

COUNTING = """\
class M(nn.Module):
  flag: bool = True

  @nn.compact
  def __call__(self, x, last=None):
    v = self.variable("state", "v", jnp.zeros, ())
    h = nn.Dense(4, name="h")
    {update}
    return h(x) + v.value
"""


def halves(body: str) -> tuple[str, str]:
    """``__init__`` and the rest of what the class becomes."""
    init, _, rest = converted(body).partition("  def __call__")
    return init, rest


def test_an_update_that_follows_from_parameters_is_part_of_the_constructor() -> None:
    init, call = halves(NORM)
    update = "state.set_value(jax.lax.stop_gradient(u))"
    assert update in init
    assert update in call
    assert "for _ in range(self.steps):" in init


@pytest.mark.parametrize(
    "update",
    [
        "v.value = v.value + 1",
        "v.value += 1",
        "n = v.value\n    v.value = 2 * n",
        "w = self.variable('state', 'w', jnp.ones, ())\n    v.value = w.value + 1",
        "n = 1 if v.value > 0 else 2\n    v.value = jnp.asarray(n)",
        "v.value = jax.random.normal(self.make_rng('power'))",
        "k = self.make_rng('power')\n    v.value = jax.random.normal(k)",
    ],
)
def test_an_update_that_differs_from_call_to_call_is_left_to_lazy_init(update: str) -> None:
    init, call = halves(COUNTING.format(update=update))
    assert "set_value" not in init
    assert "self.v = nnm.variable(" in init
    assert "v.set_value(" in call


def test_a_key_that_only_a_variable_starts_from_is_not_drawn_in_the_call() -> None:
    init, call = halves(POWER)
    assert 'key = nnm.make_rng(rngs, "power")' in init
    assert "rng" not in call
    assert "power_rng" not in init


def test_a_key_that_the_call_uses_too_is_drawn_there() -> None:
    text = POWER.replace("+ bias", "+ bias + jax.random.normal(key, (1, 4))")
    init, call = halves(text)
    assert 'key = nnm.make_rng(rngs, "power")' in init
    assert 'self.power_rng = nnm.stream(rngs, "power")' in init
    assert "key = self.power_rng()" in call


@pytest.mark.parametrize("body", [POWER, NORM, COUNTING.format(update="v.value += 1")])
def test_all_variables_start_as_linens_do_and_move_alike(body: str) -> None:
    with loaded(body, "before") as before, loaded(converted(body), "after") as after:
        report = check(
            ParityCase(
                linen=before.M(),
                nnx=lambda rngs: after.M(in_features=4, rngs=rngs),
                inputs=(X,),
                rngs={"power": 0},
                collections=("power", "state"),
            )
        )
        expected = jax.jit(before.M().init)(KEYS, X)
        built = jax.jit(
            lambda keys, x: nnm.variables_of(nnm.build(after.M, in_features=4, rngs=keys), x)
        )(KEYS, X)
    assert report.verdict == "identical"
    for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(built), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("body", [POWER, NORM, COUNTING.format(update="v.value += 1")])
def test_a_submodule_that_init_calls_twice_starts_as_linens_does(body: str) -> None:
    both = f"{body}\n{TWICE}"
    with loaded(both, "before") as before, loaded(converted(both), "after") as after:
        expected = jax.jit(before.Outer().init)(KEYS, X)
        report = check(
            ParityCase(
                linen=before.Outer(),
                nnx=lambda rngs: after.Outer(in_features=4, rngs=rngs),
                inputs=(X,),
                rngs={"power": 0},
                collections=("power", "state"),
            )
        )

        def start(keys: Any, x: Any) -> tuple[Any, Any]:
            made = nnm.build(after.Outer, in_features=4, rngs=keys)
            shown = nnm.variables_of(made, x)
            nnm.lazy_init(made, x)
            return shown, nnm.variables_of(made)

        shown, started = jax.jit(start)(KEYS, X)
    assert report.verdict == "identical"
    for one, *others in zip(*map(jax.tree.leaves, (expected, shown, started)), strict=True):
        for other in others:
            np.testing.assert_allclose(one, other, rtol=1e-6)


KEYS = {"params": jax.random.key(1), "power": jax.random.key(2)}


@pytest.mark.parametrize(
    "update",
    [
        "v.value = v.value + x.mean()",
        "v.value = jnp.asarray(x.ndim + last)",
        "if last is None:\n      v.value += 1",
        "for _ in range(len(x)):\n      v.value += 1",
        "if last is not None:\n      return x\n    v.value += 1",
        "w = v if last is None else v\n    w.value = 1.0 * last",
        "v.value = h(jnp.ones((1, 4))).mean()",
        "v.value = self.start()",
    ],
)
def test_an_update_that_may_follow_from_the_call_stays_in_the_call(update: str) -> None:
    body = COUNTING.format(update=update) + "\n  def start(self):\n    return jnp.ones(())\n"
    found = convert(textwrap.dedent(body))["M"]
    if isinstance(found, ConvertedClass):
        assert "set_value" not in halves(body)[0]


def test_an_update_that_stays_in_the_call_wants_a_look() -> None:
    found = convert(COUNTING.format(update="v.value = v.value + x.mean()"))["M"]
    assert isinstance(found, ConvertedClass)
    assert any("Linen's init runs this update" in text for _, text in found.review)
