"""Linen classes that stand in other classes, and are taken of their instances: ``self.Net(3)``."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp

KEY, X = jax.random.key(0), jnp.ones((2, 3))


class Other(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.relu(x)


class Case:
    class Net(nn.Module):
        width: int = 3

        @nn.compact
        def __call__(self, x):
            return nn.Dense(self.width)(x)

"""
MAIN = "\n\ndef main():\n    Case().run()\n"
EXPLICIT = {
    "built": "def run(self):\n    print(self.Net(4).init(KEY, X))\n",
    "built in a function inside": (
        "def run(self):\n    def built(width):\n        return self.Net(width).init(KEY, X)\n"
        "    print([built(one) for one in (2, 3)])\n"
    ),
    "of the class": (
        "@classmethod\ndef built(cls):\n    return cls.Net(2)\n\n"
        "def run(self):\n    print(self.built().init(KEY, X))\n"
    ),
    "asked for": "def run(self):\n    print(isinstance(self.Net(), self.Net), isinstance(3, self.Net))\n",
    "handed on": (
        "def built(self, kind):\n    return kind(5)\n\n"
        "def run(self):\n    print(self.built(self.Net).init(KEY, X))\n"
    ),
    "below, where nothing changes it": (
        "def run(self):\n    print(Below().more())\n\n\nclass Below(Case):\n"
        "    def more(self):\n        return Case.Net(2).init(KEY, X)\n"
    ),
}
LAZY = {
    "below, by another class": (
        "def run(self):\n    print(self.Net().init(KEY, X), Below().more())\n\n\nclass Below(Case):\n"
        "    Net = Other\n\n    def more(self):\n        return self.Net().init(KEY, X)\n"
    ),
    "bound anew": "def run(self):\n    self.Net = Other\n    print(self.Net().init(KEY, X))\n",
    "bound by its name": (
        'def run(self):\n    setattr(self, "Net", Other)\n    print(self.Net().init(KEY, X))\n'
    ),
    "of another instance": (
        "def run(self):\n    self, old = Second(), self\n    print(self.Net().init(KEY, X))\n\n\n"
        "class Second:\n    Net = Other\n"
    ),
    "of what a function is given": (
        "@staticmethod\ndef built(self):\n    return self.Net()\n\n"
        "def run(self):\n    print(self.built(Second()).init(KEY, X))\n\n\nclass Second:\n    Net = Other\n"
    ),
    "of an instance by another name": "def run(self):\n    case = self\n    print(case.Net(2).init(KEY, X))\n",
    "an attribute of it": "def run(self):\n    print(sorted(self.Net.__dataclass_fields__)[-1])\n",
}


def forms(code: str) -> dict[str, str]:
    method, _, rest = code.partition("\n\n\n")
    source = SOURCE + textwrap.indent(method, "    ") + "\n\n\n" + rest + MAIN
    return printed_alike(source)


@pytest.mark.parametrize("code", EXPLICIT.values(), ids=EXPLICIT)
def test_a_class_of_the_class_around_is_explicit(code: str) -> None:
    assert forms(code)["m.Case.Net"] == "explicit"


@pytest.mark.parametrize("code", LAZY.values(), ids=LAZY)
def test_a_class_that_may_be_another_is_lazy(code: str) -> None:
    assert forms(code)["m.Case.Net"] == "lazy"
