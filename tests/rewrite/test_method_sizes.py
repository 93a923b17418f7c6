"""Sizes of explicit classes in calls of methods other than ``__call__``."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

METHODS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Body(nn.Module):
    flag: bool = False

    def setup(self):
        self.a = nn.Dense(4)

    def __call__(self, x):
        return self.a(x) if x.shape[0] > 1 and self.flag else x * 2


class Net(nn.Module):
    flag: bool = True

    def setup(self):
        self.front = nn.Dense(4)
        self.body = Body(flag=self.flag)

    def encode(self, x):
        return self.front(x)

    def __call__(self, x):
        return self.body(self.encode(x))


def main():
    for flag in (False, True):
        net, x = Net(flag), jnp.ones((3, 7))
        variables = net.init(jax.random.key(0), x)
        print(net.apply(variables, x), net.apply(variables, x, method="encode"))
"""


def test_a_method_need_not_show_the_shape_that_a_part_is_called_with() -> None:
    assert printed_alike(METHODS) == {"m.Body": "explicit", "m.Net": "explicit"}


PARTS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Feat(nn.Module):
{feat}
    def __call__(self, x):
        return self.encode(jnp.concatenate([x, x], -1))


class Net(nn.Module):
    def setup(self):
        self.feat = Feat()

    def __call__(self, x):
        return {call}


def main():
    variables = Net().init(jax.random.key(3), jnp.ones((2, 5)))
    print(jax.tree.map(jnp.sum, variables))
"""
SETUP = """\
    def setup(self):
        self.dense = nn.Dense(4)

    def encode(self, x):
        return self.dense(x)
"""
COMPACT = """\
    @nn.compact
    def encode(self, x):
        return nn.Dense(4)(x)
"""


@pytest.mark.parametrize("feat", [SETUP, COMPACT], ids=["setup", "compact"])
@pytest.mark.parametrize(
    ("call", "form"), [("self.feat.encode(x)", "lazy"), ("self.feat(x)", "explicit")]
)
def test_a_submodule_whose_other_methods_alone_are_called_has_no_size_to_ask_for(
    feat: str, call: str, form: str
) -> None:
    assert printed_alike(PARTS.format(feat=feat, call=call))["m.Feat"] == form
