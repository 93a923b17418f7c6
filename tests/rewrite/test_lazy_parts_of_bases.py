"""Subclasses of explicit classes that hold lazy submodules, and of those whose methods they replace."""

from __future__ import annotations

import pytest

from tests.rewrite.running import lazy, printed_alike

CLASSES = """\
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.traverse_util import flatten_dict


class Loose(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        rounds = 0
        while rounds < 2:
            x = nn.Dense(self.width)(x)
            rounds += 1
        return x

    def thrice(self, x):
        return self(x) * 3

    @nn.nowrap
    def twice(self, x):
        return x * 2


class Base(nn.Module):
    width: int = 4
    gain: float = 1.0

    def setup(self):
        self.body = Loose(self.width)
        self.out = nn.Dense(3)

    def __call__(self, x):
        return self.out(self.hidden(x)) * self.gain

    def hidden(self, x):
        return nn.relu(self.body(x))


class Compact(nn.Module):
    width: int = 4
    wide: bool = False

    @nn.compact
    def __call__(self, x):
        x = nn.LayerNorm()(Loose(self.width)(x).reshape(*x.shape[:-1], self.width))
        return nn.Dense(7 if self.wide else 3)(x)


"""
SHOW = """

def main():
    x = jnp.arange(8.0).reshape(2, 4)
    variables = Net().init(jax.random.key(0), x)
    for path, value in sorted(flatten_dict(variables).items()):
        print(path, value)
    print(Net().apply(variables, x), jax.jit(Net().apply)(variables, x + 1))
    print(jax.grad(lambda v: Net().apply(v, x).sum())(variables))
"""
SUBCLASSES = {
    "another default": "class Net(Base):\n    gain: float = 2.0",
    "another default of a compact one": "class Net(Compact):\n    wide: bool = True",
    "another field": "class Net(Base):\n    shift: float = 2.0\n\n    def __call__(self, x):\n"
    "        return super().__call__(x) + self.shift",
    "another call of the same parts": "class Net(Base):\n    def __call__(self, x):\n"
    "        return self.out(nn.tanh(self.hidden(x)) + x)",
    "another method of a part": "class Net(Base):\n    def hidden(self, x):\n        return self.body.thrice(x)",
    "parts of its own": "class Net(Base):\n    def setup(self):\n        super().setup()\n"
    "        self.more = nn.Dense(5)\n\n    def __call__(self, x):\n"
    "        return jnp.concatenate([super().__call__(x), self.more(x)], -1)",
    "a subclass of a subclass": "class Mid(Base):\n    gain: float = 2.0\n\n\nclass Net(Mid):\n    width: int = 6",
    "another compact method": "class Net(Compact):\n    @nn.compact\n    def __call__(self, x):\n"
    "        return nn.Dense(self.width)(x)",
}


@pytest.mark.parametrize("text", SUBCLASSES.values(), ids=SUBCLASSES)
def test_a_subclass_of_what_holds_lazy_parts_is_explicit_with_it(text: str) -> None:
    forms = printed_alike(f"{CLASSES}{text}\n{SHOW}")
    assert forms["m.Loose"] == "lazy"
    assert forms["m.Net"] == forms["m.Base"] == forms["m.Compact"] == "explicit"


MORE = {
    "a method that binds nothing": "class Net(Base):\n    def part(self, x):\n        return self.body.twice(x)",
    "a method hands it on": "class Net(Base):\n    def part(self, x):\n        return jax.checkpoint(self.body)(x)",
    "a method copies it": "class Net(Base):\n    def part(self, x):\n        return self.body.clone()(x)",
}


@pytest.mark.parametrize("text", MORE.values(), ids=MORE)
def test_a_subclass_that_does_more_than_to_call_them_is_lazy(text: str) -> None:
    assert "a lazy submodule" in lazy(f"{CLASSES}{text}\n{SHOW}", "Net")


REPLACED = """\
import flax.linen as nn


class Part(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)


class Base(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(Part()(x))


class Net(Base):
    @nn.compact
    def __call__(self, x):
        {}
"""


REPLACEMENTS = {
    "nothing": "return nn.Dense(2)(x)",
    "super": "return super().__call__(x) + nn.Dense(3)(x)",
    "super as a value": "above = super()\n        return above.__call__(x) + nn.Dense(3)(x)",
    "the base": "return Base.__call__(self, x) + nn.Dense(3)(x)",
}


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_what_a_replaced_method_builds_is_asked_for_where_something_names_it(name: str) -> None:
    shown = "import jax\nimport jax.numpy as jnp\nfrom flax.traverse_util import flatten_dict\n"
    forms = printed_alike(shown + REPLACED.format(REPLACEMENTS[name]) + SHOW)
    assert name != "nothing" or set(forms.values()) == {"explicit"}
