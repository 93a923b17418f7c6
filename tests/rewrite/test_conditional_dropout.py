"""Dropout under conditions on the call: which number Linen gives to it decides what it draws."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

SOURCE = """
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, mode="a", c=None, a=True, b=True):
        x = nn.Dense(4)(x)
{body}
        return x


def main():
    x = jnp.ones((2, 4))
    settings = [{{}}, {{"mode": "b"}}, {{"c": 1}}, {{"mode": "b", "c": 1}}, {{"a": False}}, {{"b": False}}]
    for options in settings:
        keys = {{"params": jax.random.key(0), "dropout": jax.random.key(1)}}
        variables = Net().init(keys, x)
        print(Net().apply(variables, x, rngs={{"dropout": jax.random.key(2)}}, **options))
"""
DROP = "nn.Dropout(0.5, deterministic=False)(x)"
SURE = {
    "one": "if a:\n    x = D",
    "two under one condition": "if a:\n    x = D\nx = nn.Dense(4)(x)\nif a:\n    x = D",
    "expressions": "x = D if a else x\nx = D if a else x",
    "one behind a sure one": "x = D\nif a:\n    x = D",
    "two conditions": "if a and b:\n    x = D\nif a and b:\n    x = D",
}
UNSURE = {
    "other conditions": "if mode == 'a':\n    x = D\nif c is not None:\n    x = D",
    "a condition that changes": "if a:\n    x = D\na = b\nif a:\n    x = D",
    "both sides": "if a:\n    x = D\nelse:\n    x = -x\nif a:\n    x = -x\nelse:\n    x = D",
    "the opposite": "if a:\n    x = D\nif not a:\n    x = D",
    "one behind it": "if a:\n    x = D\nx = D",
    "rounds": "for _ in range(2):\n    x = nn.Dense(4)(x)\n    if a:\n        x = D",
}


def form(body: str) -> str:
    text = textwrap.indent(body.replace("D\n", f"{DROP}\n").replace("D if", f"{DROP} if"), " " * 8)
    text = text.removesuffix("D") + DROP if text.endswith("D") else text
    return printed_alike(LINEN + SOURCE.format(body=text))["m.Net"]


@pytest.mark.parametrize("body", SURE.values(), ids=SURE)
def test_dropout_whose_number_is_sure_where_it_draws_is_explicit(body: str) -> None:
    assert form(body) == "explicit"


@pytest.mark.parametrize("body", UNSURE.values(), ids=UNSURE)
def test_dropout_whose_number_hangs_on_the_call_keeps_its_class_lazy(body: str) -> None:
    assert form(body) == "lazy"
