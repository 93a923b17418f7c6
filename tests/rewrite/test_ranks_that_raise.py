"""Statements that raise for inputs of another rank, although nothing else reads what they bind."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        {apart}
        return nn.Dense({width})(x)


def main():
    variables = Net().init(jax.random.key(0), jnp.ones((1, 3, 4)))
    for shape in ((1, 3, 4), (3, 4), (4,), (1, 1, 3, 4)):
        for call in (lambda x: Net().init(jax.random.key(0), x), lambda x: Net().apply(variables, x)):
            try:
                print(jax.tree.map(jnp.shape, call(jnp.ones(shape))))
            except ValueError as error:
                print("ValueError", error)
"""
)
APART = {
    "all axes": ("batch, length, width = x.shape", "width"),
    "two of them": ("length, width = x.shape[1:]", "width"),
    "by a function": ("batch, length, width = jnp.shape(x)", "width"),
    "with a rest": ("batch, *_, width = x.shape", "width"),
}


@pytest.mark.parametrize(("apart", "width"), APART.values(), ids=APART)
def test_the_call_takes_the_shape_apart_as_well(apart: str, width: str) -> None:
    found = printed_alike(PROGRAM.format(apart=apart, width=width))
    assert found == {"m.Net": "explicit"}
