"""Layers that a class builds only sometimes, and that code outside of it applies to given parameters."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.rewrite.projects import rewrite_in_form
from tests.rewrite.running import module_of

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Body(nn.Module):
    def setup(self):
        self.embed = nn.Embed(7, 4)

    def __call__(self, ids):
        return jnp.tanh(self.embed(ids))


class Lm(nn.Module):
    tied: bool = True

    def setup(self):
        self.body = Body()
        self.head = nn.Dense(7, use_bias=False, kernel_init=nn.initializers.normal(0.1))

    def __call__(self, ids):
        h = self.body(ids)
        if self.tied:
            table = self.body.variables["params"]["embed"]["embedding"]
            return self.head.apply({"params": {"kernel": table.T}}, h)
        return self.head(h)


class Model:
    kind = Lm

    def __init__(self, tied):
        self.tied = tied
        self.module = self.kind(tied)
        self.params = self.module.init(jax.random.key(0), jnp.arange(3))

    def __call__(self, ids):
        return self.module.apply(self.params, ids)

    def decode(self, ids):
        def decoded(module, ids):
            h = module.body(ids) * 2
            if self.tied:
                table = module.body.variables["params"]["embed"]["embedding"]
                return module.head.apply({"params": {"kernel": table.T}}, h)
            return module.head(h)

        return self.module.apply(self.params, ids, method=decoded)
"""


def rewritten(source: str) -> str:
    result = rewrite_in_form({"m.py": source}, "auto")
    assert {one.form for one in result.classes} == {"explicit"}, [
        one.reason for one in result.classes
    ]
    (file,) = result.files
    assert file.code is not None
    return file.code


@pytest.mark.parametrize("tied", [True, False])
def test_outsiders_apply_the_head_that_is_not_built(tied: bool) -> None:
    ids = np.array([1, 5, 0])
    with module_of("old", SOURCE) as old, module_of("new", rewritten(SOURCE)) as new:
        theirs, ours = old.Model(tied), new.Model(tied)
        assert jax.tree.structure(theirs.params) == jax.tree.structure(ours.params)
        assert ("head" in ours.params["params"]) == (not tied)
        np.testing.assert_array_equal(theirs(ids), ours(ids))
        np.testing.assert_array_equal(theirs.decode(ids), ours.decode(ids))


def test_the_class_holds_a_layer_without_parameters() -> None:
    text = rewritten(SOURCE)
    assert "self.head = nnm.Unbound(nnm.factory.Dense, 7, use_bias=False" in " ".join(text.split())


def test_nothing_stands_for_a_layer_that_nobody_else_applies() -> None:
    alone = SOURCE[: SOURCE.index("class Model")]
    assert "Unbound" not in rewritten(alone)
