"""Explicit classes that hold what a factory function of other code builds, and what makes them lazy, too."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import rewrite_in_form, texts
from tests.rewrite.running import printed_alike

PROGRAM = """\
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn


class Scale(nn.Module):
    start: float = 1.0

    @nn.compact
    def __call__(self, x):
        return x * self.param("scale", nn.initializers.normal(self.start), (1, x.shape[-1]))


def norm(kind, **kwargs):
    if kind == "scale":
        return Scale(**kwargs)
    return nn.LayerNorm(**kwargs)


def dense(features, rngs=None, name=None, norm=None):
    return nn.Dense(features, name=name)


others = [norm("layer"), dense(3)]


{more}


class Net(nn.Module):
    kind: str = "scale"

    {body}


def main():
    for model in (Net(), Net("layer")):
        x = jnp.arange(8.0).reshape(2, 4)
        variables = model.init({{"params": jax.random.key(0), "dropout": jax.random.key(1)}}, x)
        print([list(variables), list(variables["params"])], jax.tree.map(jnp.shape, variables))
        print(model.apply(variables, x), jax.jit(model.apply)(variables, x))
        print(jax.grad(lambda one: model.apply(one, x).sum())(variables))
    print(others[0].apply(others[0].init(jax.random.key(2), x), x))
"""
COMPACT = "@nn.compact\n    def __call__(self, x):\n        {}"
SETUP = "def setup(self):\n        {}\n\n    def __call__(self, x):\n        {}"


def form(body: str, more: str = "") -> str:
    """The form of ``Net`` in a program that prints the same as before."""
    return printed_alike(PROGRAM.format(body=body, more=more))["m.Net"]


HELD = {
    "called where it is built": COMPACT.format("return nn.Dense(3)(dense(5)(nn.Dense(6)(x)))"),
    "called twice": COMPACT.format("layer = dense(4)\n        return layer(layer(x))"),
    "under a name of its own": COMPACT.format('return dense(5, name="own")(dense(4)(x))'),
    "one of several classes": COMPACT.format("return norm(self.kind)(nn.LayerNorm()(x))"),
    "in a loop": COMPACT.format(
        "for i in range(2):\n            x = norm(self.kind)(dense(4)(x))\n        return x"
    ),
    "under a condition on a field": COMPACT.format(
        'if self.kind == "scale":\n            x = norm("layer")(x)\n        return nn.Dense(2)(x)'
    ),
    "in setup": SETUP.format("self.norm = norm(self.kind)", "return self.norm(x)"),
    "in a list": SETUP.format(
        "self.layers = [dense(4), norm(self.kind)]",
        "for layer in self.layers:\n            x = layer(x)\n        return x",
    ),
    "beside a parameter": COMPACT.format(
        'x = norm(self.kind)(x)\n        return x + self.param("bias", nn.initializers.normal(), (1, 4))'
    ),
}


@pytest.mark.parametrize("body", HELD.values(), ids=HELD)
def test_a_class_that_calls_what_the_function_builds_is_explicit(body: str) -> None:
    assert form(body) == "explicit"


def test_a_class_that_holds_an_explicit_user_is_explicit() -> None:
    inner = "class Inner(nn.Module):\n" + "    " + COMPACT.format("return norm('layer')(x)")
    assert form(COMPACT.format("return nn.Dense(2)(Inner()(x))"), inner) == "explicit"


LAZY = {
    "is handed on": (
        "return partial(call, dense(4))(x)",
        "def call(layer, x):\n    return layer(x)",
    ),
    "is built by a partial": ("return partial(dense, 4)()(x)", ""),
    "has a width that only the class knows": (
        "return nn.Dense(2)(wide(self.kind)(x))",
        "def wide(kind):\n    return Scale() if kind == 'scale' else nn.Dense(9)\n\n\nother = wide(1)",
    ),
    "is a class's with a decorator": (
        "return marked()(x)",
        (
            "def mark(cls):\n    return cls\n\n\n@mark\nclass Marked(Scale):\n    pass\n\n\n"
            "def marked():\n    return Marked()\n\n\nother = marked()"
        ),
    ),
    "is given a module": (
        "return act(nn.Dense(4))(x)",
        (
            "class Act(nn.Module):\n    act: Any\n\n    @nn.compact\n    def __call__(self, x):\n"
            "        return self.act(x)\n\n\ndef act(act):\n    return Act(act)\n\n\nother = act(jnp.sin)"
        ),
    ),
    "is called in a function": ("layer = dense(4)\n        return (lambda y: layer(y))(x)", ""),
}


@pytest.mark.parametrize(("body", "more"), LAZY.values(), ids=LAZY)
def test_a_class_is_lazy_where_what_the_function_builds(body: str, more: str) -> None:
    assert form(COMPACT.format(body), more) == "lazy"


def test_a_class_that_lifts_a_user_is_explicit() -> None:
    inner = "class Inner(nn.Module):\n" + "    " + COMPACT.format("return norm('layer')(x)")
    assert form(COMPACT.format("return nn.remat(Inner)()(x)"), inner) == "explicit"


def test_the_function_and_its_calls_stay_as_they_are() -> None:
    body = COMPACT.format("return nn.Dense(2)(norm(self.kind)(dense(5, name='own')(x)))")
    files = {"m.py": PROGRAM.format(body=body, more="")}
    text = texts(rewrite_in_form(files, "auto"), files)["m.py"]
    assert "def dense(features, rngs=None, name=None, norm=None):" in text
    assert "\n    return nn.LayerNorm(**kwargs)\n" in text
    assert "        self.own = dense(5)\n" in text
    assert "        self.norm_0 = norm(self.kind)\n" in text
    assert '@nnm.named_in_linen("dense", "norm")' in text
    assert 'def __init__(self, kind: str = "scale", *, rngs: nnx.Rngs):' in text
