"""Local names that hide a name of Linen's: they mean what the method binds, wherever it binds them."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

HEAD = """\
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.linen import Dense, gelu, relu


class Net(nn.Module):
    kind: str = "a"

    @nn.compact
    def __call__(self, x):
        BODY
        return nn.Dense(2)(x)
"""
BODIES = {
    "a comprehension": "x = sum([relu(x) for relu in (nn.tanh, nn.sigmoid)])",
    "a generator": "x = sum(relu(x) for fs in ([nn.tanh], [nn.silu]) for relu in fs)",
    "the keys of a dict": 'fs = {relu: gelu for relu, gelu in [("a", nn.tanh)]}\nx = fs["a"](x)',
    "a comprehension's test": "x = sum(x for relu in (1, 2, 3) if relu > 1)",
    "a loop": "for relu in (nn.tanh, nn.sigmoid):\n    x = relu(x)",
    "a pattern": 'match {"f": nn.tanh}:\n    case {"f": relu}:\n        x = relu(x)',
    "a pattern of a list": "match [nn.tanh, 1, 2]:\n    case [relu, *gelu]:\n        x = relu(x) * len(gelu)",
    "the rest of a pattern": 'match {"f": 2, "g": 3}:\n    case {"f": 2, **relu}:\n        x = x * relu["g"]',
    "a parameter of a lambda": "f = lambda relu: relu(x)\nx = f(nn.tanh)",
    "parameters with stars": "f = lambda *relu, **gelu: relu[0](x) + gelu['k'](x)\nx = f(nn.tanh, k=nn.sigmoid)",
    "a function": "def relu(one):\n    return one * 2\nx = relu(x)",
    "several targets": "relu, (gelu, *_) = nn.tanh, [nn.silu, nn.elu]\nx = relu(gelu(x))",
    "a class": "x = sum(Dense * x for Dense in (1.0, 2.0))",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_local_name_is_not_linens(body: str) -> None:
    source = HEAD.replace("BODY", body.replace("\n", "\n        "))
    assert net_alike(source, "jnp.ones((2, 3)) / 3 - 0.1")["m.Net"] == "explicit"


def test_a_global_of_a_script_is_not_what_a_comprehension_binds() -> None:
    source = HEAD.replace("BODY", "x = jnp.concatenate([v.sum(-1, keepdims=True) for v in [x, x]])")
    script = "\n\nfor v in (Net(),):\n    name = type(v).__name__\n"
    assert net_alike(source + script, "jnp.ones((2, 3))")["m.Net"] == "explicit"


MAKERS = {
    "a list": "self.parts = [make(2) for make in (lambda n: nn.Dense(n), nn.Dense)]",
    "a dict": (
        'makers = {"a": lambda n: nn.Dense(n), "b": nn.Dense}\n'
        "        self.parts = tuple({k: make(2) for k, make in makers.items()}.values())"
    ),
    "a loop": (
        "parts = []\n        for make in (nn.Dense, lambda n: nn.Dense(n, use_bias=False)):\n"
        "            parts.append(make(2))\n        self.parts = parts"
    ),
}


@pytest.mark.parametrize("setup", MAKERS.values(), ids=MAKERS)
def test_classes_and_functions_that_build_in_turns_keep_their_class_lazy(setup: str) -> None:
    source = f"""\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    def setup(self):
        {setup}

    def __call__(self, x):
        return sum(part(x) for part in self.parts)
"""
    assert net_alike(source, "jnp.ones((2, 3))") == {"m.Net": "lazy"}
