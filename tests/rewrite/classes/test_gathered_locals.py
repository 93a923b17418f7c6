"""Submodules that ``setup`` binds to locals and gathers in a container that an attribute keeps."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.classes.support import converted
from tests.rewrite.running import migrated, module_of

X = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
SOURCE = """\
import flax.linen as nn


class Net(nn.Module):
    width: int = 3

    def setup(self):
        first = nn.Dense(self.width)
        second = nn.Dense(self.width)
        layers = [nn.Dense(self.width), nn.Dense(self.width)]
        {body}

    def __call__(self, x):
        for {target} in self.parts:
            x = {result}
        return x
"""
PAIRS, LAYERS = ("one, other", "other(one(x))"), ("one", "one(x)")
GATHERED = {
    "a tuple that is appended": (PAIRS, "parts = []; parts.append((first, second))"),
    "a tuple that is added": (PAIRS, "parts = []; parts += [(first, second), (layers[0], first)]"),
    "a tuple of a list": (PAIRS, "parts = []; parts.append(tuple(layers))"),
    "pairs of two lists": (PAIRS, "parts = list(zip([first, second], layers))"),
    "a list from its end": (LAYERS, "parts = layers[::-1]"),
    "a comprehension": (LAYERS, "parts = [one for one in (first, second)]"),
    "pairs by a comprehension": (PAIRS, "parts = [(one, second) for one in layers]"),
}


@pytest.mark.parametrize("is_named", [False, True], ids=["at once", "behind a name"])
@pytest.mark.parametrize(("call", "body"), GATHERED.values(), ids=GATHERED)
def test_submodules_of_locals_have_linens_paths(
    call: tuple[str, str], body: str, is_named: bool
) -> None:
    if is_named or "; " in body:
        body += "; self.parts = parts"
    else:
        body = f"self.{body}"
    source = SOURCE.format(body=body, target=call[0], result=call[1])
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        theirs, ours = old.Net(), new.Net(in_features=3, rngs=nnx.Rngs(0))
        values = nnm.variables_of(ours)
        expected = jax.eval_shape(theirs.init, jax.random.key(0), X)
        assert jax.tree.map(np.shape, values) == jax.tree.map(np.shape, expected)
        np.testing.assert_array_equal(ours(X), theirs.apply(values, X))


OTHERS = {
    "their number": "self.count = len(layers)",
    "sizes in a list": "widths = []; widths.append((self.width, 2)); self.widths = widths",
    "one of them": "self.only = layers[0]",
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_what_is_no_container_of_submodules_is_kept_as_it_is(body: str) -> None:
    lines = "layers = [nn.Dense(2), nn.Dense(2)]\n        self.layers = layers\n        " + body
    text = f"class Net(nn.Module):\n    width: int = 3\n    def setup(self):\n        {lines}\n"
    code = converted(text + "    def __call__(self, x):\n        return self.layers[1](x)\n")
    assert code.count("set_submodules") == 1
