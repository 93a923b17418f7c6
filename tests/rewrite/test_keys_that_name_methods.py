"""Lazy classes whose dicts have keys that other classes have methods of: ``return loss, {"loss": loss}``."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


class Head(nn.Module):
    def setup(self):
        self.mean = nn.Dense(2)

    def __call__(self, x):
        return self.mean(x)

    def loss(self, x):
        return (self(x) ** 2).mean()


class Drawn(nn.Module):
    @nn.compact
    def __call__(self, x):
        head, names = Head(name="head"), ("mean", "size")
        y = nn.Dense(int(x.sum()) % 3 + 2)(head(x))
        {body}


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Drawn()(x), Head(name="own")(x)


def main():
    x = jnp.ones((2, 3))
    variables = Net().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables), Net().apply(variables, x))
    head = Head()
    variables = head.init(jax.random.key(0), x)
    print(variables, head.apply(variables, x, method="loss"))
"""
)
KEYS = {
    "a key": 'return {"loss": y.sum()}',
    "an index": 'made = {"mean": y}\n        made["loss"] = y.sum()\n        return made["loss"]',
}
METHODS = {
    "the method": 'return {"loss": head.loss(x) + y.sum()}',
    "a computed name": 'return {key: getattr(head, key)(x) for key in {"loss": 1}}, y',
    "a string": 'name = "loss"\n        return getattr(head, name)(x), y',
}


@pytest.mark.parametrize("body", KEYS.values(), ids=KEYS)
def test_a_key_calls_no_method(body: str) -> None:
    found = printed_alike(PROGRAM.format(body=body))
    assert (found["m.Drawn"], found["m.Head"]) == ("lazy", "explicit")


@pytest.mark.parametrize("body", METHODS.values(), ids=METHODS)
def test_a_method_that_a_lazy_class_may_call_keeps_its_class_lazy(body: str) -> None:
    assert printed_alike(PROGRAM.format(body=body))["m.Head"] == "lazy"
