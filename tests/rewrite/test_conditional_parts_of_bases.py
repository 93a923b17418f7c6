"""Parts that a base calls, and so builds, under a condition, and subclasses that call them otherwise."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import lazy, net_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Base(nn.Module):
    has_more: bool = False

    def setup(self):
        self.more = nn.Dense(3)
        self.always = nn.Dense(2)

    def __call__(self, x):
        if self.has_more:
            x = self.more(x)
        return self.before(self.always(x))

    def before(self, x):
        return x * 2


class Net(Base):
BODY
"""


@pytest.mark.parametrize(
    "body",
    [
        "def __call__(self, x):\n    return self.more(x)",
        "def before(self, x):\n    return self.more(x)",
        "def __call__(self, x):\n    return super().__call__(x) + self.more(x).sum()",
    ],
)
def test_a_part_that_is_called_without_the_condition_keeps_the_class_lazy(body: str) -> None:
    source = SOURCE.replace("BODY", textwrap.indent(body, "    "))
    assert lazy(source, "Net")
    net_alike(source, "jnp.ones((2, 3))")


@pytest.mark.parametrize(
    "body",
    [
        "has_more: bool = True",
        "def __call__(self, x):\n    return super().__call__(x) * 2",
        "def before(self, x):\n    return x + self.has_more",
    ],
)
def test_a_class_that_leaves_the_part_to_its_base_is_explicit(body: str) -> None:
    source = SOURCE.replace("BODY", textwrap.indent(body, "    "))
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"


def test_so_does_one_whose_size_is_the_same() -> None:
    source = SOURCE.replace("BODY", "    def __call__(self, x):\n        return self.more(x)")
    source = source.replace("        self.always = nn.Dense(2)\n", "")
    source = source.replace("self.before(self.always(x))", "self.before(x)")
    assert "under a condition" in lazy(source, "Net")
    net_alike(source, "jnp.ones((2, 3))")
