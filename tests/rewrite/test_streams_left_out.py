"""Streams that a lift's ``split_rngs`` does not name: inside of it Linen draws from ``params`` instead."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Cell(nn.Module):
    @nn.compact
    def __call__(self, c, t):
        c = nn.Dense(4)(c) + t + jax.random.normal(self.make_rng("noise"), c.shape)
        c = c + jax.random.normal(self.make_rng("params"), c.shape)
        return c, c


class Inner(nn.Module):
    @nn.compact
    def __call__(self, x):
        scan = nn.scan(Cell, variable_broadcast="params", split_rngs={SCAN}, in_axes=1, out_axes=1)
        c, ys = scan()(jnp.zeros((x.shape[0], 4)), x)
        return ys + jax.random.normal(self.make_rng("noise"), ys.shape)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        v = nn.vmap(
            nn.remat(Inner), in_axes=0, out_axes=0, axis_size=2, variable_axes={"params": 0}, split_rngs={VMAP}
        )
        return v()(x)


KEYS = {name: jax.random.key(i) for i, name in enumerate(("params", "noise"))}


def main():
    x, model = jnp.ones((2, 2, 3, 4)), Net()
    variables = jax.jit(model.init)(KEYS, x)
    for names in ("noise", "params noise"):
        try:
            print(jax.jit(model.apply)(variables, x, rngs={n: KEYS[n] for n in names.split()}))
        except Exception as error:
            print(names, type(error).__name__)
"""


@pytest.mark.parametrize(
    ("scan", "vmap"),
    [
        ('"params": False', '"params": True'),
        ('"params": False, "noise": True', '"params": True, "noise": False'),
    ],
)
def test_they_fall_back_as_in_linen(scan: str, vmap: str) -> None:
    forms = printed_alike(SOURCE.replace("SCAN", scan).replace("VMAP", vmap))
    assert {*forms.values()} == {"explicit"}


ONE_KEY = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Part(nn.Module):
    @nn.compact
    def __call__(self, x):
        noise = jax.random.normal(self.make_rng("noise"), x.shape)
        return nn.Dropout(0.5, deterministic=False)(x) + noise


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dropout(0.5, deterministic=False)(x)
        return nn.vmap(Part, in_axes=0, out_axes=0, split_rngs={"dropout": True})()(x)


def main():
    x, model = jnp.ones((3, 8)), Net()
    for names in ("params", "dropout", "params dropout", "dropout noise"):
        keys = {name: jax.random.key(len(name)) for name in names.split()}
        try:
            print(model.apply({}, x, rngs=keys))
        except Exception as error:
            print(names, type(error).__name__)
"""


def test_without_params_among_them_nothing_is_drawn() -> None:
    """A call's key for ``params``, from which everything is drawn outside, is not to be had inside."""
    assert {*printed_alike(ONE_KEY).values()} == {"explicit"}
