"""Initialisers are the same objects, or give the same values."""

from __future__ import annotations

import jax
import pytest
from flax import linen, nnx

from nnx_migrate.constructs import initializers
from tests.constructs.convert import text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.zeros", "nnx.initializers.zeros"),
        ("nn.initializers.ones_init()", "nnx.initializers.ones_init()"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize("name", initializers.SAME)
def test_an_initialiser_is_the_same_object_in_nnx(name: str) -> None:
    assert getattr(linen.initializers, name) is getattr(nnx.initializers, name)


@pytest.mark.parametrize("name", initializers.SAME_RESULT)
def test_zeros_init_and_ones_init_return_the_same_initialiser(name: str) -> None:
    before = getattr(linen, name)()
    assert before is getattr(nnx.initializers, name)()
    assert before is getattr(jax.nn.initializers, name.removesuffix("_init"))


@pytest.mark.parametrize("name", initializers.DEFAULTS)
def test_a_default_initialiser_gives_linens_values(name: str) -> None:
    after = eval(initializers.DEFAULTS[name], {"nnx": nnx})
    key = jax.random.key(0)
    assert bool((getattr(linen.linear, name)(key, (4, 6)) == after(key, (4, 6))).all())
