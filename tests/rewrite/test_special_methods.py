"""Special methods of explicit classes: Python calls them on modules without variables, too."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

HEAD = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    width: int = 3
    depth: int = 2

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)

{methods}

def main():
    net = Net()
    variables = net.init(jax.random.key(0), jnp.ones((2, 4)))
    print(net.apply(variables, jnp.ones((2, 4))).sum())
    bound = net.bind(variables)
{lines}
"""


def program(methods: str, *lines: str) -> str:
    """A class with these methods, and lines of ``main``."""
    body = "".join(f"    {one}\n" for one in methods.splitlines())
    return HEAD.format(methods=body, lines="\n".join(f"    {one}" for one in lines))


HASH = "def __hash__(self):\n    return 42 + self.width"
EXPLICIT = {
    "a hash": program(HASH, "print(hash(Net(1, 2)) == hash(Net(1, 3)), hash(Net(2)) == hash(net))"),
    "a comparison": program(
        "def __eq__(self, other):\n    return self.width == other.width",
        "print(Net(1, 2) == Net(1, 3), Net(1) == Net(2))",
        "print(getattr(net, '__hash__') is None)",
    ),
    "a text": program("def __repr__(self):\n    return f'<{self.width}>'", "print(net, [Net(5)])"),
    "a length": program(
        "def __len__(self):\n    return self.depth",
        "print(len(net), len(bound), bool(Net(1, 0)))",
    ),
    "an operator": program(
        "def __contains__(self, one):\n    return one < self.width", "print(2 in net, 4 in bound)"
    ),
}
LAZY = {
    "one that asks for the class": program(
        "def __eq__(self, other):\n    return isinstance(other, Net) and self.width == other.width",
        "print(Net(1, 2) == Net(1, 3), Net(1) == 1)",
    ),
    "one that calls another method": program(
        "def size(self):\n    return self.depth\ndef __len__(self):\n    return self.size()",
        "print(len(net))",
    ),
}


@pytest.mark.parametrize("source", EXPLICIT.values(), ids=EXPLICIT)
def test_those_that_read_fields_are_the_lazy_forms_too(source: str) -> None:
    assert printed_alike(source) == {"m.Net": "explicit"}


@pytest.mark.parametrize("source", LAZY.values(), ids=LAZY)
def test_others_make_their_class_lazy(source: str) -> None:
    assert printed_alike(source) == {"m.Net": "lazy"}


def test_a_call_that_asks_for_init_alone_gets_inits_answer() -> None:
    ask = "def __call__(self):\n        return self.is_initializing()"
    source = f"import flax.linen as nn\nimport jax\n\n\nclass Net(nn.Module):\n    {ask}\n\n\n"
    run = "def main():\n    print(Net().init_with_output(jax.random.key(0))[0], Net().apply({}))\n"
    assert printed_alike(source + run) == {"m.Net": "explicit"}
