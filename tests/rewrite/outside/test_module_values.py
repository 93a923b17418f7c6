"""Modules that reach a field of functions by way of other names: such a class is lazy."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Form
from tests.rewrite.projects import rewrite_in_form
from tests.rewrite.running import printed_alike

PROGRAM = """\
import copy
import dataclasses
from typing import Any, Callable
import jax
import jax.numpy as jnp
from flax import linen as nn


class Net(nn.Module):
    act: Callable = nn.relu
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return self.act(nn.Dense(self.width)(x))


class Outer(nn.Module):
    act: Any = None

    @nn.compact
    def __call__(self, x):
        return Net(act=self.act)(x)


@dataclasses.dataclass
class Config:
    act: Any = None
    width: int = 4


def make():
    return nn.Dense(3)


def build(cls, **fields):
    return cls(**fields)


def build_with(cls, part):
    return cls(part)


class Builder:
    def head(self):
        return nn.Dense(3)

    def net(self, cls, part):
        return cls(part)

    def with_act(self, act):
        return Net(act=act)

    def with_fields(self, cls, **fields):
        return cls(**fields)


HEADS = {{"dense": nn.Dense(3), "relu": nn.relu}}
HEADS["again"] = nn.Dense(2)
WIDTHS = {{"wide": 8}}


def main():
    {body}
    x = jnp.arange(8.0).reshape(2, 4)
    variables = model.init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables))
    print(model.apply(variables, x))
"""
GIVEN = {
    "a local name": "head = nn.Dense(3)\n    model = Net(act=head)",
    "by position": "head = nn.Dense(3)\n    model = Net(head)",
    "a name of a loop": "for one in (nn.relu, nn.Dense(3)):\n        model = Net(act=one)",
    "a conditional name": "head = nn.Dense(3) if WIDTHS else nn.relu\n    model = Net(act=head)",
    "what a function returns": "model = Net(act=make())",
    "what a method returns": "model = Net(act=Builder().head())",
    "what a lambda returns": "head = lambda: nn.Dense(3)\n    model = Net(act=head())",
    "an entry of a table": 'model = Net(act=HEADS["again"])',
    "an entry of a table, by a method": 'model = Net(act=HEADS.get("dense"))',
    "an attribute of an object": "config = Config(act=make())\n    model = Net(act=config.act)",
    "an attribute that is set": "config = Config()\n    config.act = make()\n    model = Net(act=config.act)",
    "unpacked": "fields = dict(act=nn.Dense(3))\n    model = Net(**fields)",
    "a function that builds": "model = build(Net, act=nn.Dense(3))",
    "a function that builds, unpacked": 'model = build(Net, **{{"act": make()}})',
    "a function that builds, by position": "model = build_with(Net, nn.Dense(3))",
    "a method that builds": "model = Builder().with_act(nn.Dense(3))",
    "a method that builds, by position": "model = Builder().net(Net, nn.Dense(3))",
    "a method that builds, unpacked": "model = Builder().with_fields(Net, act=nn.Dense(3))",
    "a class of a table": 'model = {{"net": Net}}["net"](act=nn.Dense(3))',
    "a copy of a module": "model = Net(act=copy.deepcopy(nn.Dense(3)))",
    "another class": "model = Outer(act=nn.Dense(3))",
    "a clone": "model = Net().clone(act=nn.Dense(3))",
    "a copy": "model = dataclasses.replace(Net(), act=nn.Dense(3))",
}


@pytest.mark.parametrize("body", GIVEN.values(), ids=GIVEN)
def test_a_class_whose_field_of_functions_may_be_given_a_module_is_lazy(body: str) -> None:
    body = body.replace("{{", "{").replace("}}", "}")
    assert printed_alike(PROGRAM.format(body=body))["m.Net"] == "lazy"


PLAIN = {
    "a function": "model = Net(act=nn.gelu)",
    "a name of a function": "head = nn.gelu\n    model = Net(act=head)",
    "what a module computes": (
        "dense = nn.Dense(3)\n    y = dense.bind(dense.init(jax.random.key(0), jnp.ones(3)))(jnp.ones(3))\n"
        "    model = Net(width=len(y))"
    ),
    "a name that another function gives a module": (
        "def other():\n        act = nn.Dense(3)\n        return act.features\n\n"
        "    act = nn.gelu\n    model = Net(act=act, width=other())"
    ),
    "an attribute of other objects": (
        "config = Config(width=3)\n    model = build(Net, act=nn.gelu, width=config.width)"
    ),
    "a number of a table": 'model = Net(width=WIDTHS["wide"])',
    "a method that is handed on": (
        "apply = Config(act=nn.Dense(3).apply).act\n    model = [Net][0](width=3)\n"
        "    assert callable(apply) and jax.grad(lambda layer: 1.0 * len(layer))([1.0]) == [0.0]"
    ),
    "a class that sees itself built": "models = [build(Net), build(Outer, act=nn.relu)]\n    model = models[0]",
}


@pytest.mark.parametrize("body", PLAIN.values(), ids=PLAIN)
def test_a_class_that_is_given_functions_is_explicit(body: str) -> None:
    assert printed_alike(PROGRAM.format(body=body))["m.Net"] == "explicit"


def test_a_field_of_one_class_is_not_that_of_another() -> None:
    source = PROGRAM.format(body="model = Net(act=nn.gelu)") + (
        "\n\nclass Other(nn.Module):\n    act: Any\n\n    def setup(self):\n        self.kind = self.name\n\n"
        "    def __call__(self, x):\n        return Net(act=nn.relu)(self.act(x))\n\n\n"
        "other = Other(act=nn.Dense(3))\n"
    )
    forms = {one.name: one.form for one in rewrite_in_form({"m.py": source}, "auto").classes}
    assert forms["m.Net"] is Form.EXPLICIT


TESTS = """\
import jax.numpy as jnp
import pytest
from flax import linen as nn


class Net(nn.Module):
    act: object = nn.relu

    @nn.compact
    def __call__(self, x):
        return self.act(nn.Dense(4)(x))


{fixture}
def test_net(act):
    Net(act=act).init({{"params": None}}, jnp.ones((2, 4)))
"""
FIXTURES = {
    "parametrized": ('@pytest.mark.parametrize("act", [nn.relu, nn.Dense(3)])', Form.LAZY),
    "parametrized with functions": (
        '@pytest.mark.parametrize("act", [nn.relu, nn.gelu])',
        Form.EXPLICIT,
    ),
    "a fixture": ("@pytest.fixture\ndef act():\n    return nn.Dense(3)\n\n", Form.LAZY),
    "a fixture of a function": (
        "@pytest.fixture\ndef act():\n    return nn.gelu\n\n",
        Form.EXPLICIT,
    ),
    "a fixture with parameters": (
        "@pytest.fixture(params=[nn.relu, nn.Dense(3)])\ndef act(request):\n    return request.param\n\n",
        Form.LAZY,
    ),
}


@pytest.mark.parametrize(("fixture", "form"), FIXTURES.values(), ids=FIXTURES)
def test_tests_are_given_what_pytest_gives_them(fixture: str, form: Form) -> None:
    files = {"test_m.py": TESTS.format(fixture=fixture)}
    assert [one.form for one in rewrite_in_form(files, "auto").classes] == [form]
