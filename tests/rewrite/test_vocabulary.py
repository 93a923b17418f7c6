"""Which statements a class may have to be explicit: those of published model code."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import lazy, migrated

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp

_made = 0


def count():
    global _made
    _made += 1
    return _made


def widest(widths):
    best = 0
    while widths[best] != max(widths):
        best += 1
    return widths[best]


def pairs(widths):
    for one in widths:
        yield one


class Model(nn.Module):
    widths: tuple = (3, 4)
    options: dict = None

    @nn.compact
    def __call__(self, x):
"""


def _source(body: str) -> str:
    return SOURCE + textwrap.indent(textwrap.dedent(body), " " * 8)


REFUSED = {
    "while": """\
        n = 0
        while n < 2:
            n += 1
        return nn.Dense(n)(x)
        """,
    "while that only the call sees": """\
        x = nn.Dense(4)(x)
        n = 2
        while n:
            x, n = x * 2, n - 1
        return x
        """,
    "try": """\
        try:
            width = self.widths[2]
        except IndexError:
            width = 5
        return nn.Dense(width)(x)
        """,
    ":=": "return nn.Dense(n)(x) if (n := len(self.widths)) else x\n",
    "nonlocal": """\
        n = 2

        def more():
            nonlocal n
            n += 1
            return n

        return nn.Dense(more())(x)
        """,
    "yield": """\
        def wide():
            yield from self.widths

        for one in wide():
            x = nn.Dense(one)(x)
        return x
        """,
    "a function with global": "return nn.Dense(count())(x)\n",
    "a function with yield": """\
        for one in pairs(self.widths):
            x = nn.Dense(one)(x)
        return x
        """,
    "del of an item": """\
        widths = list(self.widths)
        del widths[0]
        return nn.Dense(widths[0])(x)
        """,
    "a list's other methods": """\
        widths = list(self.widths)
        widths.insert(0, 7)
        return nn.Dense(widths[0])(x)
        """,
    "pop of another place": """\
        widths = list(self.widths)
        return nn.Dense(widths.pop(0))(x)
        """,
    "next": """\
        widths = iter(self.widths)
        return nn.Dense(next(widths))(nn.Dense(next(widths))(x))
        """,
}

EXPLICIT = {
    "what appends and pops": """\
        skips = []
        for one in self.widths:
            x = nn.Dense(one)(x)
            skips.append(x)
        return nn.Dense(2)(jnp.concatenate([x, skips.pop()], -1))
        """,
    "del of a local": """\
        width = len(self.widths)
        y = nn.Dense(width)(x)
        del x
        return y
        """,
    "what only looks like a change": """\
        x = jax.image.resize(x, (2, 8), "nearest")
        x = x.at[..., 0].add(1.0)
        return nn.Dense(4)(x)
        """,
    "a function that may do what it likes": "return nn.Dense(widest(self.widths))(x)\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_class_with_another_statement_is_lazy(name: str) -> None:
    assert "uses `" in lazy(_source(REFUSED[name]), "Model")


@pytest.mark.parametrize("name", EXPLICIT)
def test_a_class_of_plain_statements_is_explicit(name: str) -> None:
    text = migrated(_source(EXPLICIT[name]))
    assert "class Model(nnx.Module):" in text
    assert "rngs=rngs" in text


MIXIN = """

class Widths:
    def widest(self):
        {body}


class Other(Widths, nn.Module):
    widths: tuple = (3, 4)

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.widest())(x)
"""


@pytest.mark.parametrize(
    ("body", "is_lazy"),
    [("return max(self.widths)", False), ("widths = iter(self.widths); return next(widths)", True)],
)
def test_methods_of_a_mixin_count(body: str, is_lazy: bool) -> None:
    source = _source("return x\n") + MIXIN.format(body=body)
    if is_lazy:
        assert "its method widest uses `next`" in lazy(source, "Other")
    else:
        assert "class Other(Widths, nnx.Module):" in migrated(source)


BASES = """\
import flax.linen as nn


class Base(nn.Module):
    def widened(self, x):
        return x * 2


class Model(Base):
    @nn.compact
    def __call__(self, x):
        {}
"""


@pytest.mark.parametrize(
    "body",
    [
        "above = super()\n        return nn.Dense(3)(above.widened(x))",
        "return nn.Dense(3)(getattr(super(), 'widened')(x))",
        "return nn.Dense(3)(super(Model, self).widened(x)) + len(str(super))",
    ],
)
def test_super_as_a_value_keeps_a_class_lazy(body: str) -> None:
    assert "uses `super()` as a value" in lazy(BASES.format(body), "Model")


def test_methods_called_of_super_do_not() -> None:
    assert migrated(BASES.format("return nn.Dense(3)(super(Model, self).widened(x))"))
