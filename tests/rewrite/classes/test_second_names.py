"""Submodules that an attribute holds get further names in ``setup``; Linen keeps the first."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

PROGRAM = """\
import jax
import jax.numpy as jnp
from flax import linen as nn


class Inner(nn.Module):
    def setup(self):
        self.body = nn.Dense(4)

    def __call__(self, x):
        return self.body(x)


class M(nn.Module):
    tied: bool = True

    def setup(self):
        self.layers = [nn.Dense(4), nn.LayerNorm()]
        self.named = {{"one": nn.Dense(4), "two": nn.LayerNorm()}}
        self.enc = Inner()
        {body}

    def __call__(self, x):
        for one in (*self.layers, *self.named.values(), self.enc):
            x = one(x)
        return {result}


def main():
    x = jnp.arange(8.0).reshape(2, 4)
    for model in (M(), M(tied=False)):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables))
        print(jax.jit(model.apply)(variables, x))
"""


def forms(body: str, result: str) -> dict[str, str]:
    """The forms in which the program printed the same."""
    lines = body.replace("\n", "\n        ")
    return printed_alike(PROGRAM.format(body=lines, result=result))


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("self.a = self.layers[-1]", "self.a(x)"),
        ("self.a = self.layers[:1]", "self.a[0](x)"),
        ("self.a = self.named['two']", "self.a(x)"),
        ("self.a = list(reversed(self.layers))", "self.a[1](self.a[0](x))"),
        ("self.a = [one for one in self.layers]", "self.a[1](self.a[0](x))"),
        ("self.a = {'x': self.layers[0], 'y': self.enc}", "self.a['y'](self.a['x'](x))"),
        ("self.a = self.layers + self.layers", "self.a[0](self.a[3](x))"),
        ("self.a = dict(zip('xy', self.layers))", "self.a['x'](self.a['y'](x))"),
        ("first, last = self.layers\nself.a = last", "self.a(x)"),
        ("for one in self.layers:\n    self.a = one", "self.a(x)"),
        ("first = self.enc\nself.a = first", "self.a(x)"),
        ("one = self.a = nn.Dense(4)", "self.a(x)"),
        ("self.b = self.a = self.tied", "x * self.a + self.b"),
    ],
)
def test_a_second_name_is_read_by_the_first(body: str, result: str) -> None:
    assert forms(body, result) == {"m.Inner": "explicit", "m.M": "explicit"}


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("self.a, self.b = self.layers", "self.b(self.a(x))"),
        ("self.a = self.enc.body", "self.a(x)"),
        ("self.a = self.layers[0] if self.tied else nn.Dense(4)", "self.a(x)"),
        ("self.b = self.a = nn.Dense(4)", "self.b(x)"),
        ("self.b = self.a = Inner()", "self.a(self.b(x))"),
        ("self.b = self.a = [nn.Dense(4), Inner()]", "self.a[0](self.b[1](x))"),
        ("self.b = one = self.a = nn.Dense(4)", "self.a(x)"),
    ],
)
def test_a_second_name_that_a_property_cannot_read_keeps_the_class_lazy(
    body: str, result: str
) -> None:
    assert forms(body, result)["m.M"] == "lazy"


ROWS = """\
import jax
import jax.numpy as jnp
from flax import linen as nn


class M(nn.Module):
    sizes: tuple = (3, 4)

    def setup(self):
        rows = []
        for size in self.sizes:
            rows.append([nn.Dense(size), nn.Dense(size)])
        self.rows = rows

    def __call__(self, x):
        for {row} in self.rows:
            x = jnp.fft.fft({last}(jnp.fft.fft({first}(x)).real)).real
        return x


def main():
    x = jnp.arange(8.0).reshape(2, 4)
    variables = M().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables))
    print(jax.jit(M().apply)(variables, x))
"""


@pytest.mark.parametrize(
    ("names", "form"),
    [
        (("first, last", "first", "last"), "explicit"),
        (("row", "row[0]", "row[1]"), "lazy"),  # items of what is no list of the class's
    ],
)
def test_lists_of_lists_hold_lazy_submodules_where_names_tell_them(
    names: tuple[str, str, str], form: str
) -> None:
    row, first, last = names
    assert printed_alike(ROWS.format(row=row, first=first, last=last)) == {"m.M": form}
