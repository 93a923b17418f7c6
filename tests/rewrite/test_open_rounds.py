"""Submodules that only rounds call of which an argument of the call says how many there are."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import in_auto, printed_alike

COMPACT = """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x, {steps}):
        x = nn.Dense(4)(x)
        inner = nn.Dense(4)
        for {loop}:
            x = inner(x)
        {after}
        return x
"""
SETUP = """
class Net(nn.Module):
    def setup(self):
        self.outer = nn.Dense(4)
        self.inner = nn.Dense(4)

    def __call__(self, x, {steps}):
        x = self.outer(x)
        for {loop}:
            x = self.inner(x)
        {after}
        return x
"""
MAIN = """
import jax
import jax.numpy as jnp


def main():
    x = jnp.ones((2, 3, 4))
    for steps in (0, 1, 3):
        variables = Net().init(jax.random.key(0), x, steps)
        print(sorted(variables["params"]), Net().apply(variables, x, steps).sum())
"""
LEFT = "nn.Dense(4)\n"


@pytest.mark.parametrize("source", [COMPACT, SETUP], ids=["compact", "setup"])
@pytest.mark.parametrize("steps", ["steps", "steps=0", "steps=2"])
@pytest.mark.parametrize(
    "loop",
    [
        "_ in range(steps)",
        "_ in reversed(range(steps))",
        "_ in range(steps - 1)",
        "_ in range(min(steps, 2))",
        "_ in [one for one in (0, 1) if one < steps]",
        "_ in (0, 1)[:steps]",
        "_ in [None] * steps",
        "_ in steps * (x,)",
        "_, _ in zip([x] * steps, (1, 2))",
    ],
)
def test_they_are_left_to_their_first_call(source: str, steps: str, loop: str) -> None:
    text = LINEN + source.format(steps=steps, loop=loop, after="") + MAIN
    assert printed_alike(text) == {"m.Net": "explicit"}
    assert in_auto(text).count(LEFT) == 1


FILLED = """
class Net(nn.Module):
    def setup(self):
        self.outer = nn.Dense(4)
        self.inner = nn.Dense(4)

    def __call__(self, x, steps, more=()):
        x, kept = self.outer(x), []
        for i in range(3):
            if i < steps:
                kept.append(x * i)
        return {out}
"""


@pytest.mark.parametrize(
    "out",
    ["sum([self.inner(one) for one in kept])", "x + sum([self.inner(one) for one in more])"],
    ids=["a list that only some rounds fill", "an argument without items"],
)
def test_so_are_those_of_a_list_that_may_be_empty(out: str) -> None:
    text = LINEN + FILLED.format(out=out) + MAIN.replace(".sum()", "")
    assert printed_alike(text) == {"m.Net": "explicit"}
    assert in_auto(text).count(LEFT) == 1


@pytest.mark.parametrize(
    ("loop", "after"),
    [
        ("_ in range(x.shape[1])", ""),
        ("_ in range(steps)", "x = {inner}(x)"),
        ("_ in range(3)", ""),
    ],
    ids=["over an axis", "called behind it, too", "a number"],
)
@pytest.mark.parametrize(
    ("source", "inner"), [(COMPACT, "inner"), (SETUP, "self.inner")], ids=["compact", "setup"]
)
def test_what_surely_has_a_round_or_is_called_elsewhere_is_built(
    source: str, inner: str, loop: str, after: str
) -> None:
    body = source.format(steps="steps", loop=loop, after=after.format(inner=inner))
    assert printed_alike(LINEN + body + MAIN) == {"m.Net": "explicit"}
    assert LEFT not in in_auto(LINEN + body)


UNASKED = """
class Net(nn.Module):
    def setup(self):
        self.outer = nn.Dense(4)
        self.inner = nn.Dense(4)

    def __call__(self, x, steps=0):
        for one in [self.outer(x), x] * steps:
            x = x + self.inner(one)
        return self.outer(x)
"""


def test_no_argument_asks_for_a_size_that_a_first_call_shows() -> None:
    text = LINEN + UNASKED + MAIN
    assert printed_alike(text) == {"m.Net": "explicit"}
    assert "def __init__(self, *, in_features: int, rngs: nnx.Rngs)" in in_auto(text)
