"""Lists of modules that have modules in their fields, as ``Residual(PreNorm(Attention(8)))``."""

import pytest

from tests.rewrite.running import net_alike

SOURCE = """\
from typing import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp


class Inner(nn.Module):
    width: int = 6

    @nn.compact
    def __call__(self, x):
        halves = jnp.split(nn.Dense(24)(x), 2, -1)
        first, second = map(lambda one: one.reshape(-1, 3, 4).swapaxes(-1, -2), halves)
        return nn.Dense(self.width)((first * second).mean(-2))


class Residual(nn.Module):
    fn: Callable

    @nn.compact
    def __call__(self, x, **options):
        return self.fn(x, **options) + x


class PreNorm(nn.Module):
    fn: Callable

    @nn.compact
    def __call__(self, x, **options):
        return self.fn(nn.LayerNorm()(x), **options)


class Net(nn.Module):
    depth: int = 2

"""
COMPACT = "    @nn.compact\n    def __call__(self, x):\n        {}\n\n\n"
SETUP = (
    "    def setup(self):\n        self.layers = {}\n\n"
    "    def __call__(self, x):\n        for {}\n        return x\n\n\n"
)
PAIR = "[Residual(PreNorm(Inner())), Residual(nn.Dense(6))]"
NETS = {
    "a loop that appends": COMPACT.format(
        "layers = []\n        for _ in range(self.depth):\n            layers.append(Residual(Inner()))\n"
        "        for layer in layers:\n            x = layer(x)\n        return x"
    ),
    "a loop of few rounds": COMPACT.format(
        "layers = []\n        for _ in range(2):\n            layers.append(Residual(Inner()))\n"
        "        for layer in layers:\n            x = layer(x)\n        return x"
    ),
    "pairs": COMPACT.format(
        f"layers = []\n        for _ in range(self.depth):\n            layers.append({PAIR})\n"
        "        for one, other in layers:\n            x = other(one(x))\n        return x"
    ),
    "setup": SETUP.format(
        "[Residual(PreNorm(Inner())) for _ in range(2)]",
        "layer in self.layers:\n            x = layer(x)",
    ),
    "pairs in setup": SETUP.format(
        f"[{PAIR} for _ in range(2)]",
        "one, other in self.layers:\n            x = other(one(x))",
    ),
}


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_lists_of_modules_with_module_fields_are_explicit(net: str) -> None:
    forms = net_alike(SOURCE + net, "jnp.linspace(-1, 1, 12).reshape(2, 6)")
    assert set(forms.values()) == {"explicit"}
