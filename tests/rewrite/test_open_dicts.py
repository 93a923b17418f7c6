"""Dicts of which the text does not say every entry, and methods of bases without a call."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

MAIN = """

def main():
    x = jnp.ones((2, 4))
    variables = Net().init(jax.random.key(0), x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, leaf.sum())
    print(Net().apply(variables, x))
"""
IMPORTS = "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"
SOURCE = (
    IMPORTS
    + """\
class Net(nn.Module):
    widths: tuple = (("a", 3), ("b", 2))

    @nn.compact
    def __call__(self, x):
BODY
        return x
"""
    + MAIN
)


@pytest.mark.parametrize(
    "body",
    [
        "for k, w in dict(self.widths).items():\n    x = nn.Dense(w, name=k)(x)",
        "for w in dict(self.widths).values():\n    x = nn.Dense(w)(x)",
        "x = nn.Dense(dict(self.widths)['b'])(nn.Dense(dict(self.widths).get('a'))(x))",
        "for k, w in {**dict(self.widths), 'c': 5}.items():\n    x = nn.Dense(w)(x)",
    ],
)
def test_every_entry_counts(body: str) -> None:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    printed_alike(SOURCE.replace("BODY", lines))


LEVELS = (
    IMPORTS
    + """\
class Base(nn.Module):
    def setup(self):
        self.inp = nn.Dense(3)

    def stem(self, x):
        return self.inp(x)


class Middle(Base):
    n: int = 2

    def setup(self):
        super().setup()
        self.layers = [nn.Dense(2) for _ in range(self.n)]

    def __call__(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return x


class Last(Middle):
    def setup(self):
        super().setup()
        self.norm = nn.LayerNorm()

    def __call__(self, x):
        return self.norm(super().__call__(x))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Last(n=1)(Middle()(nn.Dense(5)(x)))
"""
    + MAIN
)


def test_what_a_base_without_a_call_builds_has_its_size_from_the_class_that_calls_it() -> None:
    assert set(printed_alike(LEVELS).values()) == {"explicit"}
