"""Submodules that a compact method hands to another: Linen makes their variables where that one calls them."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike
from tests.rewrite.test_forms import auto, said

GATE = """\
class Gate(nn.Module):
    inner: nn.Module
    deep: bool = False

    @nn.compact
    def __call__(self, x):
        if self.deep:
            x = self.inner(x)
        return x


"""
MODEL = """\
class Model(nn.Module):
    deep: bool = True

    @nn.compact
    def __call__(self, x):
        {body}


"""
MAIN = """\
def main():
    x = jnp.ones((2, 4))
    for deep in (True, False):
        made = Model(deep).init(jax.random.key(0), x)
        print(made, Model(deep).apply(made, x))
"""
HEAD = LINEN + "import jax\nimport jax.numpy as jnp\n\n\n"

SOMETIMES = {
    "by a field": "return Gate(nn.Dense(4), deep=self.deep)(x)",
    "by a field that says the opposite": "return Gate(nn.Dense(4), deep=not self.deep)(x)",
    "bound to a name": "inner = nn.Dense(4)\n        return Gate(inner, deep=self.deep)(x)",
    "called in a loop": (
        "gate = Gate(nn.Dense(4), deep=self.deep)\n        for _ in range(2):\n"
        "            x = gate(x)\n        return x"
    ),
}
ALWAYS = {
    "whatever the field says": "return Gate(nn.Dense(4), deep=True)(x)",
    "under the condition it is built under": (
        "if self.deep:\n            x = Gate(nn.Dense(4), deep=True)(x)\n        return x"
    ),
}


@pytest.mark.parametrize("body", SOMETIMES.values(), ids=SOMETIMES)
def test_one_that_may_stay_without_a_call_keeps_the_class_that_hands_it_on_lazy(body: str) -> None:
    forms = printed_alike(HEAD + GATE + MODEL.format(body=body) + MAIN)
    assert forms == {"m.Gate": "explicit", "m.Model": "lazy"}


@pytest.mark.parametrize("body", ALWAYS.values(), ids=ALWAYS)
def test_one_that_is_called_with_what_holds_it_is_explicit(body: str) -> None:
    result = auto({"m.py": HEAD + GATE + MODEL.format(body=body) + MAIN})
    assert said(result) == {"m.Gate": "explicit", "m.Model": "explicit"}
