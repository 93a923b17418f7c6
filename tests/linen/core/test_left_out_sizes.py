"""Sizes that an explicit class may go without, where code reads another part of it than they are for."""

from __future__ import annotations

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


class Head(nn.Module):
    def setup(self):
        self.dense = nn.Dense(3)
        self.bias = self.param("bias", nn.initializers.normal(), (1, 3))

    def __call__(self, x, shared=None):
        y = x @ shared if shared is not None else self.dense(x)
        return y + self.bias


class Net(nn.Module):
    body: nn.Module

    def setup(self):
        self.head = Head()

    def __call__(self, x):
        return self.head(self.body(x))


class Biased(Net):
    def __call__(self, x):
        return self.body(x) + self.head.bias


class Shared(Net):
    def __call__(self, x):
        return self.head(self.body(x), jnp.ones((3, 3))) + self.head.bias


def main():
    x = jnp.ones((2, 3))
    for net in Net(nn.Dense(3)), Biased(nn.Dense(3)), Shared(nn.Dense(3)):
        variables = net.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables), net.apply(variables, x))
"""
)


def test_a_parameter_is_read_where_a_layer_beside_it_has_no_size() -> None:
    found = printed_alike(PROGRAM)
    assert found["m.Head"] == "explicit"
    assert found["m.Net"] == "lazy"
