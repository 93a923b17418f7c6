"""Classes inside functions that read the functions' locals."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import printed_alike

HEAD = """\
import functools
import flax.linen as nn
import jax
import jax.numpy as jnp


def make(act=jnp.tanh, width=3):
{before}
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return {result}
{after}
    return Net()


def main():
    net = make()
    variables = net.init(jax.random.key(0), jnp.ones((2, 4)))
    print(jax.tree.map(jnp.shape, variables), net.apply(variables, jnp.ones((2, 4))).sum())
"""


def program(before: str, result: str, after: str = "") -> str:
    """A function with a class in it, and code of the function before and after the class."""
    parts = [textwrap.indent(one, "    ") for one in (before, after)]
    return HEAD.format(before=parts[0], result=result, after=parts[1])


LAZY = {
    "a partial of a layer": program(
        "norm = functools.partial(nn.LayerNorm, use_bias=False)", "norm()(nn.Dense(width)(x))"
    ),
    "a function that builds": program(
        "def block(x, width):\n    return act(nn.Dense(width)(x))", "block(block(x, width), 2)"
    ),
    "a lambda": program("dense = lambda width: nn.Dense(width)", "dense(width)(x)"),
    "a local that reads another": program(
        "Layer = functools.partial(nn.Dense, use_bias=False)\nlayers = [Layer, nn.Dense]",
        "layers[0](width)(x)",
    ),
    "bound behind the class": program(
        "", "norm()(x)", "norm = functools.partial(nn.LayerNorm, epsilon=1e-3)"
    ),
    "in a loop": program("for norm in [nn.LayerNorm, nn.RMSNorm]:\n    pass", "norm()(x)"),
    "under a condition": program(
        "if width > 2:\n    norm = functools.partial(nn.LayerNorm)\nelse:\n    norm = nn.RMSNorm",
        "norm()(x)",
    ),
}
EXPLICIT = {
    "numbers and functions of arrays": program(
        "scale = width * 2\ndef twice(x):\n    return act(x) * scale", "twice(nn.Dense(width)(x))"
    ),
    "nothing of them": program("norm = functools.partial(nn.LayerNorm)", "nn.Dense(3)(x)"),
}


@pytest.mark.parametrize("source", LAZY.values(), ids=LAZY)
def test_a_class_that_reads_what_keeps_linens_style_is_lazy(source: str) -> None:
    assert [*printed_alike(source).values()] == ["lazy"]


@pytest.mark.parametrize("source", EXPLICIT.values(), ids=EXPLICIT)
def test_other_locals_keep_no_class_lazy(source: str) -> None:
    assert [*printed_alike(source).values()] == ["explicit"]


def test_classes_beside_it_share_the_local() -> None:
    source = program("dense = functools.partial(nn.Dense, use_bias=False)", "dense(3)(Other()(x))")
    other = "    class Other(nn.Module):\n        @nn.compact\n        def __call__(self, x):\n            return dense(2)(x)\n\n"
    forms = printed_alike(source.replace("    class Net", f"{other}    class Net"))
    assert [*forms.values()] == ["lazy", "lazy"]


def test_a_class_of_the_function_is_not_what_a_function_around_it_calls_so() -> None:
    source = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


def main():
    def make():
        class Base(nn.Module):
            width: int

        class Net(Base):
            @nn.compact
            def __call__(self, x):
                return nn.Dense(self.width)(x)

        return Base, Net

    Base, Net = make()
    net = Net(3)
    print(issubclass(Net, Base), net.init(jax.random.key(0), jnp.ones((2, 4))))
"""
    assert {*printed_alike(source).values()} == {"explicit"}
