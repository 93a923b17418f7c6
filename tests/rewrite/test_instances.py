"""What instances of explicit classes show to code around them before they have variables."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

IMPORTS = "from typing import Optional\nimport flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"
ADDED = """\
class Net(nn.Module):
    love: int = 99

    def __post_init__(self):
        self.hate = 100 - self.love
        super().__post_init__()

    def __call__(self, x):
        return x * self.hate


"""
CHANGED = """\
class Net(nn.Module):
    width: Optional[int] = None

    def __post_init__(self):
        if self.width is None:
            self.width = 5
        super().__post_init__()

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


"""
KEYWORDS = """\
class Base(nn.Module, kw_only=True):
    times: int = -1


class Net(Base):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x) * self.times


class Deep(
    nn.Module,
    kw_only=True,
):
    width: int = 3
    depth: int

    @nn.compact
    def __call__(self, x):
        for _ in range(self.depth):
            x = nn.Dense(self.width)(x)
        return x


"""
RUN = "    print(jax.tree.map(jnp.shape, net.init(jax.random.key(0), jnp.ones((2, 4)))))\n"


def program(classes: str, *lines: str) -> str:
    """Classes, and a ``main`` that binds and initialises ``net``."""
    return IMPORTS + classes + "def main():\n" + "".join(f"    {one}\n" for one in lines) + RUN


@pytest.mark.parametrize(
    "source",
    [
        program(ADDED, "net = Net()", "print(net.hate, net.apply({}, 3))"),
        program(CHANGED, "net = Net()", "print(net.width, Net(7).width)"),
    ],
    ids=["an attribute", "a field"],
)
def test_what_post_init_sets_and_others_read_keeps_the_class_lazy(source: str) -> None:
    assert printed_alike(source) == {"m.Net": "lazy"}


def test_what_post_init_sets_for_the_class_alone_is_explicit() -> None:
    assert printed_alike(program(CHANGED, "net = Net()")) == {"m.Net": "explicit"}


def test_the_constructor_says_which_fields_are_given_by_keyword_alone() -> None:
    source = program(KEYWORDS, "net = Net(8, times=2)", RUN.strip(), "net = Deep(depth=2)")
    assert {*printed_alike(source).values()} == {"explicit"}


@pytest.mark.parametrize("rngs", ["{}", '{"dropout": jax.random.key(1)}'])
def test_a_module_without_parameters_is_initialised_without_their_key(rngs: str) -> None:
    net = "class Net(nn.Module):\n    def __call__(self, x):\n        return x + 1\n\n\n"
    source = program(net, "net = Net()", f"print(net.init_with_output({rngs}, 2))")
    assert printed_alike(source) == {"m.Net": "explicit"}


def test_a_table_of_flops_counts_calls_of_methods() -> None:
    net = (
        "class Net(nn.Module):\n    def setup(self):\n        self.a = nn.Dense(3)\n        self.b = nn.Dense(2)\n\n"
        "    def half(self, x):\n        return nn.relu(self.a(x))\n\n"
        "    def __call__(self, x):\n        return self.b(self.half(x))\n\n\n"
    )
    table = "net.tabulate(jax.random.key(0), jnp.ones((2, 4)), compute_flops=True)"
    source = program(net, "net = Net()", f"print('FLOPs' in {table})")
    assert printed_alike(source) == {"m.Net": "explicit"}
