"""Annotations that name explicit classes and that the running program reads."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import lazy, printed_alike

SOURCE = """\
import dataclasses
import functools
import inspect
import typing

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


def main():
    print(Net().init(jax.random.key(0), jnp.ones((2, 3))))
"""
READ = {
    "singledispatch": """\
@functools.singledispatch
def name(module):
    return "other"
@name.register
def _(module: Net):
    return f"net {module.width}"
print(name(Net()), name(3))
""",
    "singledispatchmethod": """\
class Visitor:
    @functools.singledispatchmethod
    def visit(self, module):
        return "other"
    @visit.register
    def _(self, module: "Net"):
        return "net"
print(Visitor().visit(Net()))
""",
    "types of fields": """\
@dataclasses.dataclass
class Config:
    net: Net
for one in dataclasses.fields(Config):
    print(one.type(4).init(jax.random.key(0), jnp.ones((2, 3))))
""",
    "checked by a decorator": """\
def checked(function):
    def call(*args):
        for value, one in zip(args, inspect.signature(function).parameters.values()):
            if not isinstance(value, one.annotation):
                raise TypeError(one.name)
        return function(*args)
    return call
@checked
def width(net: Net) -> int:
    return net.width
print(width(Net(5)))
""",
    "made by a decorator": """\
def provide(function):
    return lambda: function(**{k: v() for k, v in function.__annotations__.items()})
@provide
def train(net: Net):
    return net.width
print(train())
""",
    "hints": """\
def train(net: typing.Optional[Net] = None):
    return net
kind = typing.get_type_hints(train)["net"]
print(isinstance(Net(), typing.get_args(kind)[0]))
""",
}
NOT_READ = {
    "nobody reads it": "def width(net: Net) -> int:\n    return net.width\nprint(width(Net(5)))\n",
    "registered by its class": READ["singledispatch"]
    .replace("register\n", "register(Net)\n")
    .replace("module: Net", "module"),
    "fields by their names": """\
@dataclasses.dataclass
class Config:
    net: Net
print([(one.name, getattr(Config(Net()), one.name).width) for one in dataclasses.fields(Config)])
""",
}


def program(code: str) -> str:
    """The program with the code in its main function."""
    return SOURCE + textwrap.indent(code, "    ")


@pytest.mark.parametrize("code", READ.values(), ids=READ)
def test_a_class_of_an_annotation_that_is_read_is_lazy(code: str) -> None:
    assert printed_alike(program(code)) == {"m.Net": "lazy"}


@pytest.mark.parametrize("code", NOT_READ.values(), ids=NOT_READ)
def test_other_annotations_keep_no_class_lazy(code: str) -> None:
    assert printed_alike(program(code)) == {"m.Net": "explicit"}


def test_the_reason_says_what_reads_it() -> None:
    reason = lazy(program(READ["singledispatch"]), "Net")
    assert "name.register dispatches by this annotation" in reason
    reason = lazy(program(READ["made by a decorator"]), "Net")
    assert "m reads annotations, with __annotations__" in reason
