"""Compact methods of one object that several classes define: Linen numbers what nested ones build in one row."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

HEAD = """
import jax
import jax.numpy as jnp
from flax import linen as nn


class Base(nn.Module):
    n: int = 4

    @nn.compact
    def feats(self, x):
        return nn.Dense(self.n)(x)

    def __call__(self, x):
        return nn.relu(self.feats(x))
"""
INPUT = "jnp.arange(8.0).reshape(2, 4) / 7"
EXPLICIT = {"m.Base": "explicit", "m.Net": "explicit"}
NET = """

class Net(Base):
    @nn.compact
    def __call__(self, x):
        {}
"""


def forms(classes: str) -> dict[str, str]:
    return net_alike(HEAD + classes, INPUT)


@pytest.mark.parametrize(
    "body",
    [
        "x = self.feats(x)\n        return nn.Dense(3)(x)",
        "x = super().feats(x)\n        return nn.Dense(3)(nn.Dense(4)(x))",
        "x = Base.feats(self, x)\n        return nn.Dense(3)(x)",
        "return nn.LayerNorm()(self.feats(x))",
        "x = nn.LayerNorm()(x)\n        return super().__call__(x) + self.param('w', nn.initializers.ones, (1, 4))",
        "return 2 * self.feats(x)",
    ],
)
def test_it_goes_on_where_the_one_it_calls_ends(body: str) -> None:
    assert forms(NET.format(body)) == EXPLICIT


@pytest.mark.parametrize(
    "body",
    [
        "return nn.Dense(4)(self.feats(x))",
        "x = nn.Dense(4)(x)\n        return self.feats(x)",
        "x = super().__call__(x)\n        return nn.Dense(4)(x)",
        "f = self.feats\n        return nn.Dense(3)(f(x))",
        "x = self.feats(x) if self.n else x\n        return nn.Dense(4)(x)",
        "return self.feats(self.feats(x))",
        "for _ in range(2):\n            x = super().feats(x)\n        return x",
        "return super().__call__(super().__call__(x))",
        "x = nn.LayerNorm()(x)\n        return super().__call__(self.feats(x))",
    ],
)
def test_other_ways_to_meet_stay_lazy(body: str) -> None:
    assert forms(NET.format(body)) == {"m.Base": "lazy", "m.Net": "lazy"}


@pytest.mark.parametrize(
    "classes",
    [
        # one after the other: each starts at 0, and they share what they build
        """

class Net(Base):
    @nn.compact
    def head(self, x):
        return nn.Dense(self.n, use_bias=False)(x)

    def __call__(self, x):
        return self.head(self.feats(x))
""",
        # the base calls what the class defines
        """

class Caller(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(self.inner(x))

    def inner(self, x):
        return x


class Net(Caller):
    @nn.compact
    def inner(self, x):
        return nn.tanh(nn.Dense(4)(x))
""",
        # over two levels, one of them a helper
        """

class Middle(Base):
    def more(self, x):
        return self.feats(x) + 1


class Net(Middle):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.n)(self.more(x))
""",
        # a parameter of one name
        """

class Scaled(nn.Module):
    @nn.compact
    def scale(self, x):
        return x * self.param("w", nn.initializers.constant(2.0), (1, 4))


class Net(Scaled):
    @nn.compact
    def __call__(self, x):
        return self.scale(x) + self.param("w", nn.initializers.zeros, (1, 4))
""",
        # two bases
        """

class Mixin(nn.Module):
    @nn.compact
    def mixed(self, x):
        return nn.Dense(4)(x)


class Net(Mixin, Base):
    @nn.compact
    def __call__(self, x):
        return self.mixed(nn.Dense(4)(self.feats(x)))
""",
    ],
)
def test_names_that_depend_on_another_class_stay_lazy(classes: str) -> None:
    assert forms(classes)["m.Net"] == "lazy"


def test_a_method_that_nothing_runs_any_more_does_not_count() -> None:
    assert (
        forms(
            """

class Net(Base):
    @nn.compact
    def feats(self, x):
        return nn.Dense(3)(nn.Dense(self.n)(x))
"""
        )
        == EXPLICIT
    )


SETUP = """

class Middle(nn.Module):
    def setup(self):
        self.a = nn.Dense(4)

    @nn.compact
    def {}(self, x):
        return {}(self.a(x))

    {}


class Net(Middle):
    {}
"""
CALL = "def __call__(self, x):\n        return self.feats(x)"


@pytest.mark.parametrize(
    ("parts", "form"),
    [
        (
            (
                "__call__",
                "nn.Dense(4)",
                "",
                "@nn.compact\n    def __call__(self, x):\n        return nn.LayerNorm()(self.a(x))",
            ),
            "lazy",
        ),
        (
            (
                "__call__",
                "nn.Dense(4)",
                "",
                "def __call__(self, x):\n        return self.a(x)",
            ),
            "lazy",
        ),
        (
            (
                "feats",
                "nn.Dense(4)",
                CALL,
                "def setup(self):\n        self.a = self.b = nn.Dense(4)",
            ),
            "lazy",
        ),
        # what is replaced makes nothing, or what it makes is gone with all else
        (
            (
                "__call__",
                "jnp.tanh",
                "",
                "@nn.compact\n    def __call__(self, x):\n        return nn.LayerNorm()(self.a(x))",
            ),
            "explicit",
        ),
        (
            (
                "feats",
                "nn.Dense(4)",
                CALL,
                "@nn.compact\n    def __call__(self, x):\n        return nn.LayerNorm()(self.feats(x))",
            ),
            "explicit",
        ),
    ],
)
def test_a_base_is_built_whole_or_not_at_all(parts: tuple[str, ...], form: str) -> None:
    assert forms(SETUP.format(*parts))["m.Net"] == form
