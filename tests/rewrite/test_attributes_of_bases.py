"""Attributes that the ``setup`` of a base sets and that of a subclass sets again: NNX tells data from static values."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


def identity(x):
    return x


class Own(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Base(nn.Module):
    wide: bool = True

    def setup(self):
        {base}
        self.mid = nn.Dense(4)

    def __call__(self, x):
        x = self.mid(x)
        return x if self.post is None else self.post(x)


class Sub(Base):
    def setup(self):
        super().setup()
        {sub}


{more}


def main():
    x = jnp.arange(6.0).reshape(2, 3)
    for model in (Base(), Sub(), Sub(wide=False), {last}()):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables), model.apply(variables, x))
        print(jax.grad(lambda one: model.apply(one, x).sum())(variables))
"""
)
LAST = "class Last(Sub):\n    def setup(self):\n        super().setup()\n        self.post = nn.LayerNorm()"
FUNCTIONS = ["None", "identity", "nn.relu", "lambda y: y * 2"]
LAYERS = {"a layer": "self.post = nn.LayerNorm()", "an own class": "self.post = Own()"}


@pytest.mark.parametrize("before", FUNCTIONS)
@pytest.mark.parametrize("after", LAYERS.values(), ids=LAYERS)
def test_a_submodule_follows_what_the_base_set(before: str, after: str) -> None:
    program = PROGRAM.format(base=f"self.post = {before}", sub=after, more="", last="Sub")
    assert printed_alike(program) == dict.fromkeys(("m.Own", "m.Base", "m.Sub"), "explicit")


def test_a_submodule_follows_a_submodule_or_the_function_of_two_bases() -> None:
    for before, after in (("identity", "self.last = 3"), ("None", "self.post = identity")):
        program = PROGRAM.format(base=f"self.post = {before}", sub=after, more=LAST, last="Last")
        assert printed_alike(program)["m.Last"] == "explicit"


@pytest.mark.parametrize(
    "after",
    [
        "self.post = nn.Sequential([Own(), nn.relu])",
        "self.post = Own() if self.wide else nn.Dense(4)",
        "self.scale = self.param('s', nn.initializers.ones, (1, 4))\n        self.post = lambda y: y * self.scale",
        "self.post = identity",
        "if self.wide:\n            self.post = nn.Dense(5)",
        "self.post, self.own = nn.LayerNorm(), 3",
    ],
)
def test_whatever_follows_the_program_prints_the_same(after: str) -> None:
    for before in ("None", "identity"):
        program = PROGRAM.format(base=f"self.post = {before}", sub=after, more="", last="Sub")
        assert printed_alike(program)["m.Base"] in ("explicit", "lazy")
