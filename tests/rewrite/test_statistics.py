"""Running statistics: the gradient that a later call of the same pass sends there, and where they start."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.rewrite.running import in_auto, module_of, same_bits

SOURCE = """\
import flax.linen as nn
from functools import partial


class Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        norm = nn.BatchNorm(momentum=0.5)
        y = norm(nn.Dense(4)(x), use_running_average=False)
        return norm(y, use_running_average=True)


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.BatchNorm(use_running_average=not train, momentum=0.5)(nn.Dense(4)(x))


class Siamese(nn.Module):
    def setup(self):
        self.encoder = Encoder()

    def __call__(self, x):
        return self.encoder(x, True) * self.encoder(x * 2, False)


class Chosen(nn.Module):
    norm: type = partial(nn.BatchNorm, momentum=0.5)

    @nn.compact
    def __call__(self, x):
        norm = self.norm(use_running_average=None)
        return norm(norm(nn.Dense(4)(x), use_running_average=False), use_running_average=True)


MODELS = {"Twice": Twice(), "Siamese": Siamese(), "Chosen": Chosen()}
"""
X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


@pytest.mark.parametrize("model", ["Twice", "Siamese", "Chosen"])
def test_a_gradient_reaches_through_them(model: str) -> None:
    after = in_auto(SOURCE)
    assert f"class {model}(nnx.Module)" in after
    with module_of("linen_side", SOURCE) as old, module_of("nnx_side", after) as new:
        runs = [_gradients(one.MODELS[model]) for one in (old, new)]
    same_bits(*runs)


def _gradients(model: Any) -> Any:
    variables = model.init(jax.random.key(0), X)

    def loss(params: Any) -> Any:
        output, updates = model.apply({**variables, "params": params}, X, mutable=["batch_stats"])
        return jnp.sum(output**2), updates

    return jax.jit(jax.value_and_grad(loss, has_aux=True))(variables["params"])


STARTING = """\
import flax.linen as nn
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(3)(x))
        count = self.variable("state", "count", jnp.zeros, ())
        count.value = count.value + 1
        return x * count.value


class Step(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return Net()(x, True), None


class Steps(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        steps = nn.scan(
            Step,
            variable_broadcast="params",
            variable_axes={"batch_stats": 0, "state": 0},
            split_rngs={"params": False},
            length=2,
        )
        return steps(name="steps")(x, None)[0] + len(self.name or "")


MODELS = {"Net": Net(), "Steps": Steps()}
"""


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("model", ["Net", "Steps"])
def test_a_call_that_may_change_state_makes_what_it_is_not_given(model: str, train: bool) -> None:
    after = in_auto(STARTING)
    assert "class Net(nnx.Module)" in after
    with module_of("linen_side", STARTING) as old, module_of("nnx_side", after) as new:
        runs = [_started(one.MODELS[model], train) for one in (old, new)]
    same_bits(*runs)


def _started(model: Any, train: bool) -> Any:
    variables = model.init(jax.random.key(0), X, train)
    given = {"params": variables["params"]}
    return variables, model.apply(given, X, train, mutable=["batch_stats", "state"])


ASKING = """\
import flax.linen as nn
import jax.numpy as jnp


class Cached(nn.Module):
    @nn.compact
    def __call__(self, x):
        ready = self.has_variable("cache", "seen")
        seen = self.variable("cache", "seen", jnp.zeros, x.shape)
        count = self.variable("cache", "count", jnp.zeros, ())
        if ready:
            seen.value = seen.value + x
            count.value = count.value + 1
        return nn.Dense(3)(x) * seen.value


class Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        cached = Cached()
        return cached(cached(x)) + len(self.name or "")


def model():
    return Twice()
"""


def test_a_second_call_in_init_has_the_variables_of_the_first() -> None:
    after = in_auto(ASKING)
    assert "class Cached(nnx.Module)" in after
    with module_of("linen_side", ASKING) as old, module_of("nnx_side", after) as new:
        runs = [one.model().init_with_output(jax.random.key(0), X) for one in (old, new)]
    same_bits(*runs)
