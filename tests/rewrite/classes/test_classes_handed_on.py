"""Classes of modules that are given to functions which call them: NNX's constructors need more than they give."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import functools
import itertools
from typing import Any, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp


class Part(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Model(nn.Module):
    layer: Any = nn.Dense
    widths: Sequence[int] = (3, 4)

BODY

def main():
    x = jnp.sin(jnp.arange(12.0)).reshape(2, 6)
    variables = Model().init(jax.random.key(0), x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, float(leaf.sum()))
    print(Model().apply(jax.tree.map(lambda v: v * 1.1, variables), x).tolist())
"""
SETUP = """\
    def setup(self):
        self.layers = {}

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
COMPACT = """\
    @nn.compact
    def __call__(self, x):
        layers = {}
        for layer in layers:
            x = layer(x)
        return x
"""
CALLED = {
    "map": "list(map(nn.Dense, self.widths))",
    "map of a class of the project": "[*map(Part, self.widths)]",
    "map of a partial": "list(map(functools.partial(nn.Dense, use_bias=False), self.widths))",
    "map of a field": "list(map(self.layer, self.widths))",
    "map of several": "list(map(lambda make, n: make(n), [nn.Dense, Part], self.widths))",
    "starmap": "list(itertools.starmap(nn.Dense, [(3,), (4, False)]))",
    "tree": "jax.tree.map(nn.Dense, list(self.widths))",
    "keyword": "jax.tree.map(f=nn.Dense, tree=[3, 4])",
}


@pytest.mark.parametrize("text", [SETUP, COMPACT], ids=["setup", "compact"])
@pytest.mark.parametrize("value", CALLED.values(), ids=CALLED)
def test_a_class_that_other_code_calls_keeps_its_users_lazy(value: str, text: str) -> None:
    assert printed_alike(SOURCE.replace("BODY", text.format(value)))["m.Model"] == "lazy"


KEPT = {
    "partial": "functools.partial(nn.Dense, use_bias=False)",
    "dict": "dict(a=nn.Dense, b=Part)['b']",
    "lifted": "nn.remat(Part)",
    "looked at": "[callable(Part), Part][1]",
}


@pytest.mark.parametrize("value", KEPT.values(), ids=KEPT)
def test_a_class_that_is_only_looked_at_or_wrapped_may_be_explicit(value: str) -> None:
    body = f"""\
    @nn.compact
    def __call__(self, x):
        make = {value}
        return make(2)(make(3)(x))
"""
    assert printed_alike(SOURCE.replace("BODY", body))["m.Model"] == "explicit"
