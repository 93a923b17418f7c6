"""Fields that are given functions in place of classes: what these build belongs to the module that calls them."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
from functools import partial
from typing import Any
import jax
import jax.numpy as jnp


class Plain(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(nn.Dense(self.width)(x))


class Around(nn.Module):
    inner: nn.Module

    @nn.compact
    def __call__(self, x):
        return self.inner(x)


def plain(width, name=None):
    'What a class would be.'
    return Plain(width + 1, name=name)


class Net(nn.Module):
    make: Any

    @nn.compact
    def __call__(self, x):
        for width in range(4, 6):
            x = x + self.make(width)(x)
        return nn.Dense(2)(x)


REGISTRY = {}


def register(name):
    def keep(function):
        REGISTRY[name] = function
        return function

    return keep


@register("mlp")
def mlp(width, act=nn.relu):
    return nn.Sequential([nn.Dense(width), act, nn.Dense(3)])


class Maker:
    def __init__(self, act):
        self.act = act

    def __call__(self, width):
        return mlp(width, self.act)

    def build(self, width):
        return self(width)


def chosen(kind):
    return mlp if kind == "mlp" else Plain


def curried(act):
    return lambda width: mlp(width, act)


TABLE = {"mlp": mlp, "plain": Plain}


def built(make=mlp):
    return Net(make)


def main(kind="mlp"):
    x = jnp.arange(6.0).reshape(2, 3)
    for model in {models}:
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables), model.apply(variables, x).sum())
"""
)
BUILT = "def built(make=mlp):\n    return Net(make)\n\n\n"
BUILD = {
    "by its name": "[Net(mlp)]",
    "a lambda": "[Net(lambda width: mlp(width))]",
    "a lambda that names a module": "[Net(make=lambda width: Plain(width=width, name=f'own_{width}'))]",
    "a lambda around two": "[Net(lambda width: Around(Plain(width)))]",
    "a partial": "[Net(partial(mlp, act=nn.tanh))]",
    "of a table": "[Net(TABLE[kind]), Net(TABLE['plain'])]",
    "of a registry": "[Net(make=REGISTRY[kind])]",
    "that a function gives": "[Net(chosen(kind))]",
    "that a function makes": "[Net(curried(nn.gelu))]",
    "an object that is called": "[Net(Maker(nn.relu))]",
    "a method": "[Net(Maker(nn.relu).build)]",
    "a default": "[built(), built(Plain)]",
    "among others": "[Net(make) for make in (Plain, mlp)]",
}
LIKE_CLASSES = {
    "no module": "[Net(lambda width: nn.relu)]",
    "one module": "[Net(make=lambda width: Plain(width=width))]",
    "a layer": "[Net(lambda width: nn.Dense(3, use_bias=width > 4))]",
    "a name to pass on": "[Net(lambda width, name=None: Plain(width, name=name))]",
    "a function": "[Net(plain), Net(Plain)]",
    "beside a class": "[Net(Plain), Net(lambda width: jnp.tanh)]",
}
LOOP = """\
        for width in range(4, 6):
            x = x + self.make(width)(x)
"""
COMPREHENSION = """\
        x = sum([self.make(width)(x) for width in range(4, 6)])
"""
NAMED = """\
def spelled(width, name=None):
    return Plain(width if name == "own_4" else 2 * width)


class Net"""


@pytest.mark.parametrize("models", BUILD.values(), ids=BUILD)
def test_a_class_that_gets_a_function_which_builds_modules_is_lazy(models: str) -> None:
    assert printed_alike(PROGRAM.replace("{models}", models))["m.Net"] == "lazy"


@pytest.mark.parametrize("models", LIKE_CLASSES.values(), ids=LIKE_CLASSES)
def test_functions_that_do_what_a_class_does_keep_it_explicit(models: str) -> None:
    program = PROGRAM.replace("{models}", models).replace(BUILT, "")
    assert printed_alike(program)["m.Net"] == "explicit"


@pytest.mark.parametrize("models", LIKE_CLASSES.values(), ids=LIKE_CLASSES)
def test_functions_are_called_in_comprehensions_as_classes_are(models: str) -> None:
    program = PROGRAM.replace("{models}", models).replace(BUILT, "").replace(LOOP, COMPREHENSION)
    assert printed_alike(program)["m.Net"] == "explicit"


def test_a_function_that_reads_the_name_of_what_it_builds_gets_it() -> None:
    program = PROGRAM.replace("{models}", "[Net(spelled)]").replace("class Net", NAMED)
    program = program.replace("self.make(width)", 'self.make(width, name=f"own_{width}")')
    assert printed_alike(program)["m.Net"] == "lazy"
