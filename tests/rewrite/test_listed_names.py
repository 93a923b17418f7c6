"""The order in which ``init`` of explicit classes lists names: that of the call; below lifts, jax has sorted them."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Inner(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(4, name="z")(x)
        x = nn.LayerNorm(name="a")(x)
        return nn.BatchNorm(use_running_average=False)(x)


class Step(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return Inner(name="z")(nn.Dense(4, name="y")(nn.Dense(4, name="zz")(x))), None


class Net(nn.Module):
    {decorator}
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(4, name="y")(x)
        {body}
        return nn.Dense(4, name="a")(x)


def names(tree, path=""):
    for name, value in tree.items():
        if isinstance(value, dict):
            names(value, path + "/" + name)
        else:
            print(path + "/" + name)


def main():
    variables = Net().init(jax.random.key(0), jnp.ones((2, 4)))
    names(variables)
    names(Net().apply(variables, jnp.ones((2, 4)), mutable=["batch_stats"])[1])
"""
STACKED = 'variable_axes={"params": 0, "batch_stats": 0}, split_rngs={"params": True}'
BODIES = {
    "no lift": ("", 'x = Inner(name="x")(x)'),
    "a norm built before its layer": ("", 'x = nn.LayerNorm(name="p")(nn.Dense(4, name="q")(x))'),
    "recurrent": ("", 'x = nn.RNN(nn.GRUCell(4, name="c"), name="r")(x[None])[0]'),
    "remat of a class": ("", 'x = nn.remat(Inner)(name="x")(x)'),
    "remat of the call": ("@nn.remat", 'x = Inner(name="x")(x)'),
    "scan": ("", f'x, _ = nn.scan(Step, {STACKED}, length=2)(name="t")(x, None)'),
    "vmap": ("", f'x = nn.vmap(Inner, {STACKED}, in_axes=None, axis_size=2)(name="s")(x)[0]'),
}


@pytest.mark.parametrize(("decorator", "body"), BODIES.values(), ids=BODIES)
def test_names_are_listed_as_linen_lists_them(decorator: str, body: str) -> None:
    forms = printed_alike(SOURCE.format(decorator=decorator or "# plain", body=body))
    assert {*forms.values()} == {"explicit"}


OTHER = 'variable_axes={"batch_stats": 0, "params": 0}, split_rngs={"params": True}'
SHARED = (
    'variable_axes={"batch_stats": 0}, variable_broadcast="params", split_rngs={"params": False}'
)
FIRST = {
    **BODIES,
    "scan, statistics first": ("", f"x, _ = nn.scan(Step, {OTHER}, length=2)()(x, None)"),
    "vmap, statistics first": (
        "",
        f"x = nn.vmap(Inner, {OTHER}, in_axes=None, axis_size=2)()(x)[0]",
    ),
    "scan of shared parameters": ("", f"x, _ = nn.scan(Step, {SHARED}, length=2)()(x, None)"),
}


@pytest.mark.parametrize(("decorator", "body"), FIRST.values(), ids=FIRST)
def test_collections_are_listed_as_linen_lists_them_where_a_lift_comes_first(
    decorator: str, body: str
) -> None:
    source = SOURCE.format(decorator=decorator or "# plain", body=body)
    source = source.replace('        x = nn.Dense(4, name="y")(x)\n', "", 1)
    forms = printed_alike(source)
    assert {*forms.values()} == {"explicit"}
