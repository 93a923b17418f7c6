"""Variables of ``setup`` that the first call does not read: Linen's ``init`` makes them all the same."""

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
    factor: float = 2.0

    def setup(self):
        {made}

    def __call__(self, x):
        return x * self.factor

    def inverse(self, x):
        return x / {read}


class Outer(nn.Module):
    def setup(self):
        self.net = Net()

    def __call__(self, x):
        return self.net(x)

    def inverse(self, x):
        return self.net.inverse(x)


def main():
    x = jnp.arange(3.0)
    for model in (Net(), Outer()):
        variables = model.init(jax.random.key(0), x)
        print(variables, jax.eval_shape(model.init, jax.random.key(0), x))
        print(model.apply(variables, x), model.apply(variables, x, method="inverse"))
"""
)
MADE = {
    "a parameter": ('self.scale = self.param("scale", nn.initializers.ones, (3,))', "self.scale"),
    "a local one": ('scale = self.param("scale", nn.initializers.ones, (3,))', "self.factor"),
    "a variable": ('self.scale = self.variable("s", "scale", jnp.ones, 3)', "self.scale.value"),
}


@pytest.mark.parametrize(("made", "read"), MADE.values(), ids=MADE)
def test_init_makes_what_only_another_method_reads(made: str, read: str) -> None:
    forms = printed_alike(PROGRAM.replace("{made}", made).replace("{read}", read))
    assert forms == {"m.Net": "explicit", "m.Outer": "explicit"}
