"""Our lifts take Linen's classes and ours, inside Linen's modules and ours: the same values."""

import flax.linen
import jax
import pytest

import nnx_migrate.linen as lazy
from tests.linen.core.models import KEY, X


def results(outer, inner, lifts):
    class Inner(inner.Module):
        @inner.compact
        def __call__(self, carry, _):
            return inner.Dense(3)(carry), None

    class Outer(outer.Module):
        @outer.compact
        def __call__(self, x):
            axes = {"variable_axes": {"params": 0}, "split_rngs": {"params": True}}
            return lifts.scan(Inner, length=3, **axes)()(x, None)[0]

    variables = jax.jit(Outer().init)(KEY, X)
    return variables, jax.jit(Outer().apply)(variables, X)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [(flax.linen, lazy), (flax.linen, flax.linen), (lazy, flax.linen), (lazy, lazy)],
    ids=["lazy in Linen", "Linen in Linen", "Linen in lazy", "lazy in lazy"],
)
def test_a_lift_of_a_class(outer, inner):
    expected = results(flax.linen, flax.linen, flax.linen)
    found = results(outer, inner, lazy)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    same = jax.tree.map(lambda a, b: bool((a == b).all()), found, expected)
    assert all(jax.tree.leaves(same))
