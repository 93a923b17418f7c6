"""Methods of a base draw keys, where the base builds nothing else."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Base(nn.Module):
    def noisy(self, w, train=False):
        if train:
            w = w + jax.random.normal(self.make_rng("noise"), w.shape)
        return w


BODY


def main():
    x, keys = jnp.ones((2, 4)), {"noise": jax.random.key(1), "gate": jax.random.key(2)}
    variables = Net().init({"params": jax.random.key(0), **keys}, x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, leaf.sum())
    print(Net().apply(variables, x, True, rngs=keys))
    print(Net().apply(variables, x, rngs=keys))
"""
COMPACT = """\
class Net(Base):
    @nn.compact
    def __call__(self, x, train=False):
        return nn.Dense(3)(self.noisy(x, train))"""
SETUP = """\
class Net(Base):
    width: int = 3

    def setup(self):
        self.d = nn.Dense(self.width)

    def __call__(self, x, train=False):
        return self.noisy(self.d(x), train) + jax.random.normal(self.make_rng("gate"), (2, 3))"""
BETWEEN = COMPACT.replace(
    "class Net(Base)", "class Mid(Base):\n    rate: float = 0.5\n\n\nclass Net(Mid)"
)
OVERRIDDEN = f"""{COMPACT}

    def noisy(self, w, train=False):
        return w * 2"""
EXTENDED = f"""{COMPACT}

    def noisy(self, w, train=False):
        return super().noisy(w, train) * 2"""


@pytest.mark.parametrize(
    "body", [COMPACT, SETUP, BETWEEN, EXTENDED], ids=["compact", "setup", "between", "extended"]
)
def test_its_streams_are_made_with_the_class(body: str) -> None:
    assert set(printed_alike(SOURCE.replace("BODY", body)).values()) == {"explicit"}


def test_a_class_that_overrides_them_makes_none() -> None:
    assert printed_alike(SOURCE.replace("BODY", OVERRIDDEN))["m.Net"] == "explicit"
