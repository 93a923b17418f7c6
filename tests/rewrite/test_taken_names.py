"""Fields whose names Python or NNX use for something else where a class is called."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Token(nn.Module):
    cls: int = 3

    @nn.compact
    def __call__(self, x):
        token = self.param("token", nn.initializers.normal(1.0), (1, self.cls))
        return jnp.concatenate([token, nn.Dense(self.cls)(x)])


class Net(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(MADE(x))


def main():
    for net in (Token(), Token(4), Token(cls=2), Net(), Token(cls=2).clone(cls=5)):
        variables = net.init(jax.random.key(0), jnp.ones((2, 3)))
        print(variables, net.clone().apply(variables, jnp.ones((2, 3))))
"""
MADE = ("Token(cls=self.width)", "Token(**{'cls': 2})", "Token(cls=7, name='tok')")


@pytest.mark.parametrize("made", MADE)
def test_a_field_may_be_named_cls(made: str) -> None:
    assert printed_alike(SOURCE.replace("MADE", made))["m.Token"] == "lazy"
