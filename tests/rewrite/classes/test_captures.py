"""Functions that ``__init__`` would store and that read the module it builds."""

from __future__ import annotations

import pytest

from tests.rewrite.running import in_auto, printed_alike

PROGRAM = """\
from functools import partial
from typing import Callable
import jax
import jax.numpy as jnp
from flax import linen as nn


def apply(module, x):
    return module(x)


class Child(nn.Module):
    f: Callable

    @nn.compact
    def __call__(self, x):
        return self.f(nn.Dense(4)(x))


class M(nn.Module):
    scale: float = 2.0

    {body}

    def post(self, x):
        return self.enc(x) * 2

    def gate(self, x):
        return x * self.scale


def main():
    model, x = M(), jnp.arange(8.0).reshape(2, 4)
    variables = model.init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables))
    print(jax.jit(model.apply)(variables, x))
    print(jax.jit(model.apply)(jax.tree.map(lambda one: one * 2, variables), x))
"""
SETUP = """\
def setup(self):
        self.enc = nn.Dense(4)
        self.w = self.param("w", nn.initializers.ones, (1, 4))
        {body}

    def __call__(self, x):
        return {result} + self.enc(x) * self.w
"""
COMPACT = """\
@nn.compact
    def __call__(self, x):
        enc = nn.Dense(4)
        w = self.param("w", nn.initializers.ones, (1, 4))
        x = enc(x)
        return {result} * w
"""


def forms(body: str) -> dict[str, str]:
    """The forms in which the program printed the same."""
    return printed_alike(PROGRAM.format(body=body))


def in_setup(body: str, result: str) -> dict[str, str]:
    lines = body.replace("\n", "\n        ")
    return forms(SETUP.format(body=lines, result=result))


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("self.a = self.post", "self.a(x)"),
        ("self.a = lambda x: self.enc(x)", "self.a(x)"),
        ("self.a = partial(apply, self.enc)", "self.a(x)"),
        ("self.a = partial(self.post)", "self.a(x)"),
        ("self.a = {'a': self.post}", "self.a['a'](x)"),
        ("def scaled(x):\n    return x * self.w\nself.a = scaled", "self.a(x)"),
        ("again = self.post\nself.a = [again, nn.relu]", "self.a[0](x)"),
        ("self.a = nn.Sequential([nn.Dense(4), lambda x: x * self.w])", "self.a(x)"),
        ("self.a = nn.Sequential([self.enc, self.post])", "self.a(x)"),
        ("self.a = Child(self.post)", "self.a(x)"),
    ],
)
def test_what_reads_the_module_keeps_the_class_lazy(body: str, result: str) -> None:
    assert in_setup(body, result)["m.M"] == "lazy"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("self.a = self.gate", "self.a(x)"),
        ("self.a = lambda x: x * self.scale", "self.a(x)"),
        ("self.a = nn.Sequential([nn.Dense(4), self.gate])", "self.a(x)"),
        ("self.a = nn.Sequential([nn.Dense(4), lambda x: x * self.scale])", "self.a(x)"),
        ("self.a = len([self.enc])", "self.a"),
        ("self.a = self.enc.features", "self.a"),
        ("self.a = partial(jnp.clip, min=self.scale)", "self.a(x)"),
    ],
)
def test_what_reads_data_does_not(body: str, result: str) -> None:
    assert in_setup(body, result)["m.M"] == "explicit"


@pytest.mark.parametrize("given", ["lambda y: enc(y)", "lambda y: y * w", "lambda y: enc(y) + x"])
def test_a_submodule_that_is_given_such_a_function_is_built_in_each_call(given: str) -> None:
    found = forms(COMPACT.format(result=f"Child({given})(x)"))
    assert (found["m.Child"], found["m.M"]) == ("lazy", "lazy")


def test_what_only_reads_the_call_is_given_in_each_call() -> None:
    found = forms(COMPACT.format(result="Child(lambda y: y + x)(x)"))
    assert (found["m.Child"], found["m.M"]) == ("explicit", "explicit")


@pytest.mark.parametrize("given", ["nn.relu", "lambda x: x * 2", "self.gate"])
def test_a_submodule_that_is_given_another_function_is_built_once(given: str) -> None:
    assert forms(COMPACT.format(result=f"Child({given})(x)"))["m.Child"] == "explicit"


def test_a_compact_sequential_is_built_in_each_call() -> None:
    found = forms(COMPACT.format(result="nn.Sequential([nn.Dense(4), lambda y: y * w])(x)"))
    assert found["m.M"] == "explicit"


HELD = """\
@nn.compact
    def __call__(self, x):
        enc = nn.PReLU()
        unread = nn.PReLU()
        return Child(enc)(x)
"""


def test_a_submodule_is_given_beside_one_that_is_left_to_a_first_call() -> None:
    found = forms(HELD)
    assert (found["m.Child"], found["m.M"]) == ("explicit", "explicit")
    assert "self.PReLU_1 = nn.PReLU()\n" in in_auto(PROGRAM.format(body=HELD))


BASE = """\
import jax
import jax.numpy as jnp
from flax import linen as nn


class Base(nn.Module):
    def setup(self):
        self.enc = nn.Dense(4)
        {body}

    def hook(self, x):
        return x

    def __call__(self, x):
        return self.run(self.enc(x))


class Derived(Base):
    def hook(self, x):
        return {hook}


def main():
    x = jnp.arange(8.0).reshape(2, 4)
    for model in (Base(), Derived()):
        variables = model.init(jax.random.key(0), x)
        print(jax.jit(model.apply)(variables, x))
"""


@pytest.mark.parametrize(("hook", "form"), [("self.enc(x)", "lazy"), ("x * 2", "explicit")])
def test_a_method_that_a_base_stores_is_the_one_that_overrides_it(hook: str, form: str) -> None:
    source = BASE.format(body="self.run = self.hook", hook=hook)
    assert printed_alike(source)["m.Derived"] == form


def test_what_reads_a_submodule_of_a_base_keeps_the_class_lazy() -> None:
    more = "x\n\n    def setup(self):\n        super().setup()\n        self.again = lambda x: self.enc(x)"
    source = BASE.format(body="self.run = self.hook", hook=more)
    assert printed_alike(source)["m.Derived"] == "lazy"
