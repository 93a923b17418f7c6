"""Keys of an explicit class's own scope, which lazy code around it draws from, too."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from tests.rewrite.running import in_auto, module_of, same_bits

SOURCE = """\
import flax.linen as nn
import jax


class Noisy(nn.Module):
    def setup(self):
        self.w = self.param("w", nn.initializers.normal(), (1, 4))
        self.dropout = nn.Dropout(0.5, deterministic=False)
        self.b = self.param("b", nn.initializers.normal(), (1, 4))
        self.dense = nn.Dense(4)

    def __call__(self, x):
        y = self.dense(x * self.w + self.b) + jax.random.normal(self.make_rng("noise"), x.shape)
        if self.is_initializing():
            y = y + jax.random.normal(self.make_rng("params"), x.shape)
        return self.dropout(y) + jax.random.normal(self.make_rng("noise"), x.shape)


class Plain(nn.Module):
    def setup(self):
        self.part = Noisy()

    def __call__(self, x):
        return self.part(self.part(x))


class Folded(nn.Module):
    def setup(self):
        self.part = nn.fold_rngs(Noisy)()

    def __call__(self, x):
        return self.part(self.part(x)) + jax.random.normal(self.make_rng("noise"))


class Adapter(nn.Module):
    inner: nn.Module

    def setup(self):
        nn.share_scope(self, self.inner)

    @nn.compact
    def __call__(self, x):
        scale = self.param("scale", nn.initializers.normal(), (1, 4))
        return self.inner(x) * scale + jax.random.normal(self.make_rng("noise"), x.shape)


class Shared(nn.Module):
    def setup(self):
        self.part = Adapter(Noisy())

    def __call__(self, x):
        return self.part(x)


def alone():
    return Noisy()


def plain():
    return Plain()


def adapter():
    return Adapter(Noisy())
"""
X = jnp.ones((3, 4))
KEYS = {name: jax.random.key(seed) for seed, name in enumerate(("params", "dropout", "noise"))}
STEP = {name: jax.random.key(seed) for seed, name in enumerate(("dropout", "noise"), 5)}


@pytest.mark.parametrize("model", ["alone()", "plain()", "Folded()", "adapter()", "Shared()"])
def test_they_are_counted_together_as_in_linen(model: str) -> None:
    after = in_auto(SOURCE)
    assert "class Noisy(nnx.Module)" in after
    with module_of("linen_side", SOURCE) as old, module_of("nnx_side", after) as new:
        runs = [_run(eval(model, one.__dict__)) for one in (old, new)]
    same_bits(*runs)


def _run(model: Any) -> Any:
    """What ``init`` gives and makes, and what a call after it gives."""
    output, variables = jax.jit(model.init_with_output)(KEYS, X)
    return output, variables, jax.jit(model.apply)(variables, X, rngs=STEP)
