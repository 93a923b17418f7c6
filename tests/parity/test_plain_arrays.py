"""Arrays that a module without values keeps beside its variables are named by their attribute."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from nnx_migrate.parity.checks.compare import compare
from nnx_migrate.parity.programs.canonical import canonical
from nnx_migrate.parity.sides.abstract import plain_arrays
from tests.parity.test_compare import CASE, side


def scaled(x, key):
    return x * jax.random.uniform(key)


def closed_over(key):
    return lambda x: scaled(x, key)


class Holder(nnx.Module):
    """A module that builds ``drop`` of its key in one way or another."""

    def __init__(self, make, *, rngs: nnx.Rngs):
        self.dense = nnx.Linear(2, 2, rngs=rngs)
        self.drop = make(rngs)


class Outer(nnx.Module):
    def __init__(self, make, *, rngs: nnx.Rngs):
        self.layers = nnx.List([Holder(make, rngs=rngs)])


def abstract(make):
    return nnx.eval_shape(lambda: Outer(make, rngs=nnx.Rngs(0)))


@pytest.mark.parametrize(
    "make",
    [
        lambda rngs: functools.partial(scaled, key=rngs.params()),
        lambda rngs: closed_over(rngs.params()),
        lambda rngs: functools.partial(closed_over(rngs.params())),
    ],
    ids=["partial", "closure", "both"],
)
def test_a_key_that_a_function_keeps_is_named(make):
    assert plain_arrays(abstract(make)) == ("layers/0/drop",)


@pytest.mark.parametrize(
    "make",
    [
        lambda rngs: nnx.Dropout(0.1, rngs=rngs),
        lambda rngs: nnx.Param(jnp.ones(2)),
        lambda rngs: functools.partial(scaled, key=None),
        lambda rngs: closed_over(3),
    ],
    ids=["layer", "variable", "partial", "closure"],
)
def test_what_keeps_no_array_is_not(make):
    assert plain_arrays(abstract(make)) == ()


def test_a_cell_that_is_not_bound_yet_holds_nothing():
    def make(rngs):
        def call(x):
            return later(x)

        if rngs is None:
            later = scaled
        return call

    assert plain_arrays(abstract(make)) == ()


def test_a_program_that_differs_tells_of_them_first():
    def traced(stack, function):
        text = jax.jit(function).lower(jnp.ones(2)).as_text()
        return dataclasses.replace(side(stack), programs={"forward": canonical(text)})

    nnx_side = dataclasses.replace(traced("nnx", jnp.cos), plain_arrays=("block/drop",))
    result = compare(CASE, traced("linen", jnp.sin), nnx_side)
    details = next(one for one in result.checks if one.name == "program").details
    assert any("no variables: block/drop; " in line for line in details)
