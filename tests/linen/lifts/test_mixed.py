"""Lifts over trees of lazy modules and of Linen modules that stay Linen."""

from __future__ import annotations

import functools

import flax.linen
import jax
import jax.numpy as jnp
import pytest

import nnx_migrate.linen as nn
from tests.linen.side_by_side import assert_same

LIFTS = {
    "scan": lambda lib, target: lib.scan(
        target,
        variable_axes={"params": 0},
        split_rngs={"params": True, "noise": True},
        length=3,
    ),
    "remat": lambda lib, target: lib.remat(target),
    "vmap": lambda lib, target: lib.vmap(
        target, variable_axes={"params": 0}, split_rngs={"params": True, "noise": True}
    ),
}


def leaf(lib):  # type: ignore[no-untyped-def]
    class Leaf(lib.Module):  # type: ignore[misc]
        @lib.compact
        def __call__(self, x):  # type: ignore[no-untyped-def]
            kernel = self.param("kernel", jax.nn.initializers.lecun_normal(), (4, 4))
            return x @ kernel + jax.random.normal(self.make_rng("noise"), x.shape)

    return Leaf


def block(lib, leaf):  # type: ignore[no-untyped-def]
    class Block(lib.Module):  # type: ignore[misc]
        shared: object = None

        @lib.compact
        def __call__(self, x, *_):  # type: ignore[no-untyped-def]
            y = leaf()(x)
            y = y if self.shared is None else self.shared(y)
            return (y, None) if _ else y

    return Block


def net(lib, lift, block, shared):  # type: ignore[no-untyped-def]
    class Net(lib.Module):  # type: ignore[misc]
        @lib.compact
        def __call__(self, x):  # type: ignore[no-untyped-def]
            own = shared(name="shared") if shared else None
            x = own(x) if shared else x
            lifted = lift(lib, block)(own)
            return lifted(x, None)[0] if lift is LIFTS["scan"] else lifted(x)

    return Net()


def results(model):  # type: ignore[no-untyped-def]
    keys = {"params": jax.random.key(0), "noise": jax.random.key(1)}
    x = jnp.ones((3, 2, 4))
    variables = jax.jit(model.init)(keys, x)
    return variables, jax.jit(functools.partial(model.apply, rngs=keys))(variables, x)


@pytest.mark.parametrize("lift", LIFTS.values(), ids=LIFTS.keys())
@pytest.mark.parametrize(
    ("outer", "middle", "inner", "shared"),
    [
        ("lazy", "lazy", "linen", None),
        ("lazy", "linen", "lazy", None),
        ("lazy", "linen", "linen", None),
        ("linen", "linen", "lazy", None),
        ("lazy", "lazy", "lazy", "linen"),
        ("linen", "linen", "linen", "lazy"),
    ],
)
def test_any_part_may_stay_linen(lift, outer, middle, inner, shared) -> None:  # type: ignore[no-untyped-def]
    if shared:  # what is shared has no axis of layers
        lift = LIFTS["remat"]
    libraries = {"lazy": nn, "linen": flax.linen}

    def build(outer, middle, inner, shared):  # type: ignore[no-untyped-def]
        lib = libraries[outer]
        made = block(libraries[middle], leaf(libraries[inner]))
        return net(lib, lift, made, leaf(libraries[shared]) if shared else None)

    expected = results(build("linen", "linen", "linen", shared and "linen"))
    assert_same(expected, results(build(outer, middle, inner, shared)))
