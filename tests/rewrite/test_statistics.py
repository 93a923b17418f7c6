"""Running statistics that a later call of the same pass reads: their gradient is Linen's."""

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
