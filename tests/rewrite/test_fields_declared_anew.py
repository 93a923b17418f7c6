"""Fields of a base that a subclass declares anew: a dataclass reads their defaults off the class."""

from __future__ import annotations

import pytest

from tests.rewrite.running import lazy, net_alike

X = "jnp.arange(12.0).reshape(2, 6) / 7"
FIELDS = """\
from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp


class Kept:
    kept = 3


class Base(nn.Module, Kept):
    first: int = 2
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.Dense(self.width)(x)) * self.first


class Net(Base):
    BODY
"""
ANEW = {
    "width: int": "without a default, and keeps that of m.Base",
    "kept: int": "without a default, and keeps that of m.Kept",
    "width: ClassVar[int] = 4": "an attribute of the class",
}


@pytest.mark.parametrize("body", ANEW)
def test_what_dataclass_reads_off_the_class_stays_lazy(body: str) -> None:
    source = FIELDS.replace("BODY", body)
    assert ANEW[body] in lazy(source, "Net")
    assert net_alike(source, X)["m.Net"] == "lazy"


@pytest.mark.parametrize("body", ["width: int = 4", "kept: int = 4", "pass", "more: int = 4"])
def test_fields_with_defaults_of_their_own_are_rewritten(body: str) -> None:
    assert net_alike(FIELDS.replace("BODY", body), X)["m.Net"] == "explicit"
