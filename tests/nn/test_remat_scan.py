"""``nnm.remat_scan`` against ``linen.remat_scan``: names, seeds, values, gradients, memory."""

from __future__ import annotations

import functools
from typing import Any

import jax
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm

from .oracle import array, check


class LinenBlock(linen.Module):
    features: int

    @linen.compact
    def __call__(self, x: Any) -> Any:
        h = linen.Dense(self.features)(x)
        return x + linen.Dense(4)(jax.nn.relu(h))


LinenBlock.__name__ = "Block"


class Block(nnx.Module):
    def __init__(self, features: int, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(in_features, features, rngs=rngs)
        self.Dense_1 = nnx.Linear(features, 4, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return x + self.Dense_1(jax.nn.relu(self.Dense_0(x)))


class LinenModel(linen.Module):
    target: Any
    options: Any

    @linen.compact
    def __call__(self, x: Any) -> Any:
        return linen.remat_scan(self.target, **self.options)(4)(x)


class Model(nnx.Module):
    def __init__(self, target: Any, options: Any, *, rngs: nnx.Rngs) -> None:
        stack = nnm.remat_scan(target, **options)
        self.name = nnm.linen_name(stack) + "_0"
        setattr(self, self.name, stack(4, in_features=4, rngs=rngs))

    def __call__(self, x: Any) -> Any:
        return getattr(self, self.name)(x)


CASES: dict[str, tuple[Any, Any, Any]] = {
    "one loop": (LinenBlock, Block, {"lengths": (3,)}),
    "two loops": (LinenBlock, Block, {"lengths": (2, 3)}),
    "another axis": (LinenBlock, Block, {"lengths": (2, 3), "variable_axes": {"params": 1}}),
    "a policy, and the same keys for all": (
        LinenBlock,
        Block,
        {
            "lengths": (2, 2),
            "policy": jax.checkpoint_policies.dots_saveable,
            "split_rngs": {"params": False},
        },
    ),
    "a built-in layer": (linen.Dense, nnm.factory.Dense, {"lengths": (2, 2)}),
}


@pytest.mark.parametrize(("old", "new", "options"), CASES.values(), ids=CASES)
def test_values_gradients_and_program_are_linens(old: Any, new: Any, options: Any) -> None:
    check(LinenModel(old, options), lambda rngs: Model(new, options, rngs=rngs), array(2, 4))


@pytest.mark.parametrize(("old", "new", "options"), CASES.values(), ids=CASES)
def test_the_same_seed_gives_linens_parameters(old: Any, new: Any, options: Any) -> None:
    before = jax.jit(LinenModel(old, options).init)(jax.random.key(3), array(2, 4))
    after = jax.jit(lambda key: nnm.variables_of(nnm.build(Model, new, options, rngs=key)))(
        jax.random.key(3)
    )
    assert jax.tree.structure(before) == jax.tree.structure(after)
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert one.shape == other.shape
        assert bool((one == other).all())


def test_a_partial_stays_one() -> None:
    stack = nnm.remat_scan(functools.partial(Block, 5), lengths=(2,))
    assert stack(in_features=4, rngs=nnx.Rngs(0)).Dense_0.kernel.shape == (2, 4, 5)


@pytest.mark.parametrize("target", [len, lambda x: x])
def test_what_is_no_module_class_is_refused(target: Any) -> None:
    with pytest.raises(TypeError, match=r"expected remat_scan to get an nnx\.Module class"):
        nnm.remat_scan(target, lengths=(2,))


def test_a_length_is_needed() -> None:
    with pytest.raises(ValueError, match="at least one length"):
        nnm.remat_scan(Block, lengths=())
