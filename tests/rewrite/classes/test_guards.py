"""Guards of compact methods: ``__init__`` has those that ask fields alone in front of what it builds."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.projects import rewrite_in_form, texts
from tests.rewrite.running import printed_alike

PROGRAM = """\
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn


class Net(nn.Module):
    width: int = 0
    init: Any = None
    kind: str = "a"

    @nn.compact
    def __call__(self, x):
{body}
{more}

def main():
    x = jnp.arange(8.0).reshape(2, 4)
    for width, init, kind in [(0, None, "a"), (3, None, "b"), (3, nn.initializers.ones, "c"), (8, nn.initializers.ones, "a")]:
        model = Net(width, init, kind)
        try:
            variables = model.init(jax.random.key(0), x)
        except Exception as error:
            print(type(error).__name__, error)
            continue
        print(jax.tree.map(jnp.shape, variables), model.apply(variables, x))
"""
BUILT = """\
k = self.param("k", self.init or nn.initializers.zeros, (self.width,))
return nn.Dense(self.width)(x) + k
"""
WIDTH = 'if self.width <= 0:\n    raise ValueError(f"width {self.width}")\n'
METHOD = "\n    def size(self):\n        return 2 * self.width\n"


def sides(body: str, more: str = "") -> tuple[str, str]:
    """What ``__init__`` and the call become, in a program that prints the same as before."""
    source = PROGRAM.format(body=textwrap.indent(body, " " * 8), more=more)
    assert printed_alike(source) == {"m.Net": "explicit"}
    text = texts(rewrite_in_form({"m.py": source}, "auto"), {"m.py": source})["m.py"]
    init, call = text[: text.index("\n\n\ndef main")].split("    def __call__(self, x):\n")
    return init, textwrap.dedent(call)


@pytest.mark.parametrize(
    "guard",
    [
        WIDTH,
        'if self.init is None:\n    raise TypeError("no init")\n',
        'if not callable(self.init) or self.kind.upper() not in ("A", "B"):\n    raise TypeError()\n',
        'if self.width < 1:\n    raise ValueError("small")\nelif self.width > 7:\n    raise IndexError\n',
        f"# what follows divides by it\n{WIDTH}",
        "assert self.width > 0\n",
        'assert self.width % 4 == 0, f"{self.width} is no multiple of 4"  # heads\n',
    ],
)
def test_the_constructor_raises_what_the_fields_say(guard: str) -> None:
    init, call = sides(guard + BUILT)
    assert init.count(textwrap.indent(guard, " " * 8)) == 1
    assert "raise" not in call
    assert "assert" not in call


@pytest.mark.parametrize(
    "guard",
    [
        'if x.ndim != 2:\n    raise ValueError("axes")\n',
        'if self.kind == "b":\n    raise ValueError(f"{x.shape}")\n',
        "assert x.shape[-1] == 4 and self.width < 8\n",
        'least = 1\nif self.width < least:\n    raise ValueError("small")\n',
        'if self.has_variable("cache", "k"):\n    raise ValueError("cached")\n',
        'if self.kind == "b":\n    print("b")\n    raise ValueError("b")\n',
    ],
)
def test_other_guards_stay_in_the_call(guard: str) -> None:
    built = "return nn.Dense(3)(x)\n"
    init, call = sides(guard + built)
    assert "raise" not in init
    assert "assert" not in init
    assert guard.splitlines()[-1].strip() in call


def test_guards_behind_what_is_built_stay_in_the_call() -> None:
    init, call = sides(f"x = nn.Dense(3)(x)\n{WIDTH}return x\n")
    assert "raise" not in init
    assert WIDTH in call


def test_a_module_with_other_methods_may_have_fields_that_the_call_refuses() -> None:
    built = "return nn.Dense(max(self.width, 1))(x)\n"
    init, call = sides(WIDTH + built, METHOD)
    assert "raise" not in init
    assert textwrap.indent(WIDTH, "    ") in call
