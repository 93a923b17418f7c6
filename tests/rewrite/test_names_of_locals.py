"""Locals of the user's code that are called as locals of the converted ``__init__`` are."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.rewrite.running import lazy, migrated, same_in_auto

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
IMPORTS = "from typing import Any\nimport flax.linen as nn\nimport jax.numpy as jnp\n"
MODEL = "\n\ndef model():\n    return Model()\n"
LOOP = "for w in (4, 5):\n    x = nn.Dense(w)(x)\n"
SETUP = """
class Block(nn.Module):
    width: int
    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)
class Model(nn.Module):
    block: Any = Block
    def setup(self):
        down_list = (4, 5)
        self.down = [self.block(w) for w in down_list]
    def __call__(self, x):
        for layer in self.down:
            x = layer(x)
        return x
"""


def compact(body: str, fields: str = "") -> str:
    """A class whose call has this body."""
    head = f"class Model(nn.Module):\n{fields}    @nn.compact\n    def __call__(self, x):\n"
    return IMPORTS + head + textwrap.indent(body, " " * 8)


EXPLICIT = {
    "a local before a loop": compact(f"x_features = 7\n{LOOP}return nn.Dense(x_features)(x)\n"),
    "between two loops": compact(
        f"{LOOP}x_features = 6\nx = nn.Dense(x_features)(x)\n{LOOP}return x\n"
    ),
    "of another loop": compact(
        "for w in (4, 5):\n    for x_features in (1, 2):\n        x = nn.Dense(w + x_features)(x)\nreturn x\n"
    ),
    "an item": compact(
        "for w, *x_features in ((4, 5), (6, 7)):\n    x = nn.Dense(w)(x)\nreturn nn.Dense(x_features[0])(x)\n"
    ),
    "the second name, too": compact(
        f"x_features, x_features_2 = 7, 8\n{LOOP}return nn.Dense(x_features)(x) @ jnp.ones((7, x_features_2))\n"
    ),
    "a list of setup": IMPORTS + SETUP,
}
LAZY = {
    "rngs": compact("rngs = 5\nreturn nn.Dense(rngs)(x)\n"),
    "out_features_of_conv": compact(
        "out_features_of_conv = 6\nx = self.conv(4)(x)\nreturn nn.Dense(out_features_of_conv)(x)\n",
        "    conv: Any = nn.Dense\n",
    ),
}


@pytest.mark.parametrize("program", EXPLICIT.values(), ids=EXPLICIT)
def test_locals_of_the_constructor_have_other_names(program: str) -> None:
    assert "nn.Module" not in migrated(program).replace("nnx.Module", "")
    same_in_auto(program + MODEL, "model()", X)


@pytest.mark.parametrize(("name", "program"), LAZY.items())
def test_a_class_that_takes_a_name_of_the_constructor_is_lazy(name: str, program: str) -> None:
    assert lazy(program, "Model") == f"its code uses the name {name!r}"
    same_in_auto(program + MODEL, "model()", X)


def test_a_global_that_is_called_rngs_is_not_hidden() -> None:
    program = f"rngs = 4\n{compact('return nn.Dense(rngs)(x)')}"
    assert lazy(program, "Model") == "its code uses the name 'rngs'"
    same_in_auto(program + MODEL, "model()", X)


@pytest.mark.parametrize(
    "body",
    [
        "rngs = nn.Dense\nreturn rngs(4)(x)\n",
        "rngs = 4\nreturn nn.Dense(rngs)(x)\n",
        "rngs = dict(use_bias=False)\nreturn nn.Dense(4, **rngs)(x)\n",
    ],
)
def test_a_local_that_is_called_rngs_and_builds_keeps_the_class_lazy(body: str) -> None:
    program = compact(body)
    assert lazy(program, "Model") == "its code uses the name 'rngs'"
    same_in_auto(program + MODEL, "model()", X)
