"""Loops over lists of arrays that a call makes: ``__init__`` builds as many layers as the lists have items."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted
from tests.rewrite.running import lazy, net_alike

HEAD = """\
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    widths: Any = WIDTHS

    @nn.compact
    def __call__(self, x):
        BODY
"""
OUTS = "outs = [nn.Dense(width)(x) for width in self.widths]\n"
SAME = "outs = [nn.Dense(4)(x) for _ in self.widths]\n"
EXPLICIT = {
    "a comprehension": f"{OUTS}return sum(nn.Dense(2)(out) for out in outs)",
    "a loop": f"{SAME}y = 0.0\nfor out in outs:\n    y = nn.Dense(4)(y + out)\nreturn y",
    "one after another": (
        f"{SAME}outs = [nn.Dense(3)(out) for out in outs]\nouts = [nn.relu(nn.Dense(5)(out)) for out in outs]\n"
        "return nn.Dense(2)(jnp.concatenate(outs, axis=-1))"
    ),
    "with their numbers": (
        f'{SAME}return sum(nn.Dense(2, name=f"head_{{i}}")(out) for i, out in enumerate(outs))'
    ),
    "numbers decide": f"{SAME}return [nn.Dense(2 + i)(out) for i, out in enumerate(outs)]",
    "beside a field": (
        f"{SAME}return [nn.Dense(width)(out) for out, width in zip(outs, self.widths)]"
    ),
    "with what stands beside": (
        "outs = [x] + [nn.Dense(4)(x) for _ in self.widths]\nreturn sum(nn.Dense(2)(out) for out in outs)"
    ),
    "the other way round": (
        "outs = [x, nn.Dense(4)(x), nn.Dense(5)(x)]\ny = jnp.zeros((2, 3))\nfor out in reversed(outs):\n"
        "    y = nn.Dense(3)(jnp.concatenate([y, out], axis=-1))\nreturn y"
    ),
    "as many as there are": (
        f"{SAME}heads = [nn.Dense(2) for _ in range(len(outs))]\n"
        "return sum(head(out) for head, out in zip(heads, outs))"
    ),
    "their number is a size": f"{SAME}return nn.Dense(len(outs))(x) if len(outs) > 1 else nn.Dense(9)(x)",
    "a pyramid": (
        "found = []\nfor width in (8, 6, 4):\n    x = nn.relu(nn.Dense(width)(x))\n    found.append(x)\n"
        "sides = [nn.Dense(3)(one) for one in found]\ntop = sides[-1]\nouts = [top]\n"
        "for one in reversed(sides[:-1]):\n    top = top + one\n    outs.append(nn.Dense(3)(top))\n"
        "return [nn.Dense(2)(one) for one in outs]"
    ),
}
LAZY = {
    "only some rounds make one": (
        "outs = [nn.Dense(width)(x) for width in self.widths if width > 3]\n"
        "return sum([nn.Dense(2)(out) for out in outs], jnp.zeros((2, 2)))"
    ),
    "an item is taken away": f"{SAME}last = outs.pop()\nreturn sum([nn.Dense(2)(out) for out in outs], nn.Dense(2)(last))",
    "another name adds one": f"{SAME}more = outs\nmore.append(x)\nreturn sum(nn.Dense(2)(out) for out in outs)",
    "an item's size decides": f"{OUTS}return [nn.Dense(out.shape[-1])(out) for out in outs]",
    "a loop adds some": (
        f"{SAME}for i in range(len(outs)):\n    outs.append(nn.Dense(4)(outs[i]))\n"
        "return sum(nn.Dense(2)(outs[i]) for i in range(len(outs)))"
    ),
    "a flag adds one": (
        f"{SAME}if len(self.widths) > 1:\n    outs = outs + [x]\nreturn sum(nn.Dense(2)(out) for out in outs)"
    ),
}
WIDTHS = ["(3, 5)", "(4,)", "(2, 4, 6)"]


def source(body: str, widths: str = "(3, 5)") -> str:
    return HEAD.replace("WIDTHS", widths).replace("BODY", body.replace("\n", "\n        "))


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("body", EXPLICIT.values(), ids=EXPLICIT)
def test_it_is_explicit_where_the_number_of_items_is_known(body: str, widths: str) -> None:
    assert net_alike(source(body, widths), "jnp.ones((2, 4)) / 3") == {"m.Net": "explicit"}


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("body", LAZY.values(), ids=LAZY)
def test_it_is_lazy_where_only_the_call_knows(body: str, widths: str) -> None:
    assert net_alike(source(body, widths), "jnp.ones((2, 4)) / 3") == {"m.Net": "lazy"}


def test_the_reason_names_the_list() -> None:
    body = "return [nn.Dense(2)(one) for one in x]"
    assert "a loop over 'x', whose length only the call knows" in lazy(source(body), "Net")


def test_the_constructor_counts_rounds() -> None:
    text = converted(
        """\
        class M(nn.Module):
          widths: tuple[int, ...]

          @nn.compact
          def __call__(self, x):
            outs = [nn.Dense(4)(x) for _ in self.widths]
            for i, out in enumerate(outs):
              nn.Dense(3, name=f"a_{i}")(out)
            return [nn.LayerNorm()(out) for out, width in zip(outs, self.widths)]
        """
    )
    assert "for i in range(len(self.widths)):" in text
    assert "in enumerate(zip(range(len(self.widths)), self.widths)):" in text
