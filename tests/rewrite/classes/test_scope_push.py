"""Scopes made by hand: ``self.scope.push(name)`` and submodules that are given them."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from tests.rewrite.running import compare, migrated, module_of, refused

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
SAME = ("identical", "equal_by_rules")

HEAD = """\
import flax.linen as nn


class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


"""


def stack(body: str, fields: str = "") -> str:
    """A class whose compact method is ``body``."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return (
        f"{HEAD}class Model(nn.Module):\n    width: int = 6\n    depth: int = 3\n{fields}\n"
        f"    @nn.compact\n    def __call__(self, x):\n{lines}\n"
    )


LOOP = """\
layers = self.scope.push("layers")
for i in range(self.depth):
    x = Layer(self.width, parent=layers.push(str(i)), name="")(x)
return Layer(4)(x)"""
BY_NAME = """\
h = nn.Dense(6)(x)
blocks = self.scope.push("blocks")
first = Layer(self.width, parent=blocks.push("first"))
return first(h) + nn.Dense(6, parent=blocks.push(f"no_{self.depth}"))(x)"""


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        (stack(LOOP), {"layers": {"0", "1", "2"}, "Layer_0": {"Dense_0"}}),
        (stack(BY_NAME), {"blocks": {"first", "no_3"}, "Dense_0": {"kernel", "bias"}}),
    ],
)
def test_submodules_stand_at_the_paths_of_linen(source: str, paths: dict[str, set[str]]) -> None:
    report = compare(source, "Model()", {"in_features": 6}, (X,))
    assert report.verdict in SAME, report
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        key = jax.random.key(1)
        theirs = jax.jit(old.Model().init)(key, X)
        make = jax.jit(lambda key: nnm.variables_of(nnm.build(new.Model, in_features=6, rngs=key)))
        ours = make(key)
    assert {name: set(one) for name, one in theirs["params"].items()} == paths
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


PUSH = 'layers = self.scope.push("layers")\n'
REFUSED = {
    "handed on": f"{PUSH}print(layers)\nreturn Layer(6, parent=layers.push('0'))(x)",
    "rebound": f"{PUSH}layers = self.scope.push('b')\nreturn Layer(6, parent=layers.push('0'))(x)",
    "conditional": (
        "if self.depth:\n    layers = self.scope.push('layers')\n"
        "return Layer(6, parent=layers.push('0'))(x)"
    ),
    "nested": f"{PUSH}inner = layers.push('a')\nreturn Layer(6, parent=inner.push('0'))(x)",
    "computed": "layers = self.scope.push(f'l{self.depth}')\nreturn Layer(6, parent=layers.push('0'))(x)",
    "a number": f"{PUSH}return Layer(6, parent=layers.push(0))(x)",
    "reused": f"{PUSH}return Layer(6, parent=layers.push('0', reuse=True))(x)",
    "itself": f"{PUSH}return Layer(6, parent=layers)(x)",
    "like an automatic name": (
        "layers = self.scope.push('Dense_0')\nreturn Layer(6, parent=layers.push('0'))(x)"
    ),
    "like a field": "layers = self.scope.push('depth')\nreturn Layer(6, parent=layers.push('0'))(x)",
    "like a submodule": (
        f"{PUSH}return Layer(6, parent=layers.push('0'))(nn.Dense(6, name='layers')(x))"
    ),
    "in a function": (
        f"{PUSH}def f(x):\n    return Layer(6, parent=layers.push('0'))(x)\nreturn f(x)"
    ),
    "aliased": "scope = self.scope\nreturn Layer(6, parent=scope.push('0'))(x)",
    "asked": f"{PUSH}return Layer(6, parent=layers.push('0'))(x) * len(layers.path)",
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_scopes_are_refused(case: str) -> None:
    assert "scope" in refused(stack(REFUSED[case]))
