"""Abstract methods: NNX's metaclass asks for them, Linen's only below ``abc.ABC``."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

SOURCE = (
    LINEN
    + """
import jax
import jax.numpy as jnp
from abc import ABC, abstractmethod


class Cell(nn.Module{abc}):
    @abstractmethod
    def __call__(self, x): ...

    @abstractmethod
    def extra(self, x): ...


class Net(Cell):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
{more}

def main():
    x = jnp.ones((2, 4))
    try:
        print(Net().init(jax.random.key(0), x))
    except TypeError as error:
        print(str(error).startswith("Can't instantiate abstract class"))
"""
)
EXTRA = """
    def extra(self, x):
        return x
"""


@pytest.mark.parametrize(
    ("abc", "more", "form"),
    [
        ("", "", "lazy"),
        ("", EXTRA, "explicit"),
        (", ABC", "", "explicit"),
        (", ABC", EXTRA, "explicit"),
    ],
)
def test_they_are_asked_for_where_linen_does(abc: str, more: str, form: str) -> None:
    forms = printed_alike(SOURCE.format(abc=abc, more=more))
    assert forms["m.Net"] == form


@pytest.mark.parametrize(("call", "form"), [("Cell()", "lazy"), ("Net()", "explicit")])
def test_a_class_with_abstract_methods_may_be_built_itself(call: str, form: str) -> None:
    source = SOURCE.format(abc="", more=EXTRA).replace(
        "print(Net().init", f"print({call})\n        print(Net().init"
    )
    assert printed_alike(source)["m.Cell"] == form


STREAM = (
    LINEN
    + """
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(3)(x)
        return x + jax.random.normal(self.make_rng("{name}"), x.shape)


def main():
    keys = {{"params": jax.random.key(0), "default": jax.random.key(1), "other": jax.random.key(2)}}
    variables = Net().init(keys, jnp.ones((2, 4)))
    print(variables, Net().apply(variables, jnp.ones((2, 4)), rngs=keys))
    print(Net().init_with_output(keys, jnp.ones((2, 4))))
"""
)


@pytest.mark.parametrize("name", ["other", "default", "params"])
def test_a_stream_of_the_name_that_nnx_has_for_params_is_another_one(name: str) -> None:
    assert printed_alike(STREAM.format(name=name)) == {"m.Net": "explicit"}
