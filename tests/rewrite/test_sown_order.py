"""What calls sow comes back in the order in which they sow it, as in Linen."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Leaf(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(3)(x)
        self.sow("acts", "z", x.sum())
        self.sow("stats", "b", x.max())
        self.sow("acts", "h", x.sum())
        return x


class Pair(nn.Module):
    @nn.compact
    def __call__(self, x):
        self.sow("acts", "start", x.sum())
        x = Leaf(name="zz")(x)
        self.sow("stats", "mid", x.sum())
        x = Leaf(name="aa")(x)
        self.sow("acts", "end", x.sum())
        return x


class Body(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return Pair(name="pair")(Leaf(name="q")(x)), None


class Remat(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.BatchNorm(use_running_average=False, name="second")(x)
        x = nn.remat(Pair)(name="two")(x)
        self.sow("stats", "a", x.sum())
        x = Pair(name="one")(x)
        return nn.BatchNorm(use_running_average=False, name="first")(x)


class Scanned(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = Leaf(name="x")(x)
        axes = {"params": 0, "acts": 0, "stats": 0}
        scan = nn.scan(Body, variable_axes=axes, split_rngs={"params": True}, length=2)
        x, _ = scan(name="loop")(x, None)
        self.sow("stats", "a", x.sum())
        return Leaf(name="b")(x)


def order(tree):
    return [(name, order(one)) if isinstance(one, dict) else name for name, one in tree.items()]


def main():
    x, model = jnp.ones((2, 3)), MODEL()
    made = model.init(jax.random.key(0), x)
    base = {name: made[name] for name in ("params", "batch_stats") if name in made}
    for mutable in (["acts", "batch_stats"], ["batch_stats", "stats", "acts"], True):
        _, changed = model.apply(base, x, mutable=mutable)
        print(order(changed))
        _, changed = model.apply({**base, **changed}, x, mutable=mutable)
        print(order(changed))
"""


@pytest.mark.parametrize("model", ["Pair", "Remat", "Scanned"])
def test_it_is_listed_as_it_was_sown(model: str) -> None:
    forms = printed_alike(SOURCE.replace("MODEL", model))
    assert {*forms.values()} == {"explicit"}, forms
