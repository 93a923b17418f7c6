"""A class that stays Linen gets no NNX layers to build from."""

from __future__ import annotations

from nnx_migrate.model import Outcome
from nnx_migrate.rewrite.single import rewrite_source

SOURCE = """import flax.linen as nn
from functools import partial
from typing import Any


class Block(nn.Module):
    conv: Any
    width: int

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    @nn.compact
    def __call__(self, x):
        return {built}(x)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        conv = partial(nn.Dense, use_bias=False)
        return Block(conv=conv, width=3)(conv(4)(x))
"""


def reasons(built: str) -> dict[str, str | None]:
    found = rewrite_source(SOURCE.format(built=built)).classes
    return {one.name: one.reason for one in found if one.outcome is Outcome.REFUSED}


def test_the_class_that_hands_layer_classes_to_a_linen_one_is_refused() -> None:
    found = reasons("self.conv(self.width)")
    assert found["source.Model"] == (
        "Block stays Linen and builds layers from 'conv', which would be NNX layers here"
    )


def test_a_field_that_builds_nothing_crosses() -> None:
    assert "source.Model" not in reasons("nn.Dense(self.width)")
