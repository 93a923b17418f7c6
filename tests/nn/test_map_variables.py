"""``nnm.map_variables`` against ``linen.map_variables``: names, seeds, values, gradients, state."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm

from .oracle import array


class LinenBlock(linen.Module):
    features: int

    @linen.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        seen = self.variable("batch_stats", "seen", jnp.zeros, ())
        if not self.is_initializing():
            seen.value = seen.value + 1
        h = jax.nn.relu(linen.Dense(self.features)(x))
        return linen.Dense(4)(h) + seen.value, None


LinenBlock.__name__ = "Block"


class Block(nnx.Module):
    def __init__(self, features: int, *, rngs: nnx.Rngs) -> None:
        self.seen = nnx.BatchStat(jnp.zeros(()))
        self.Dense_0 = nnx.Linear(4, features, rngs=rngs)
        self.Dense_1 = nnx.Linear(features, 4, rngs=rngs)

    def __call__(self, x: Any, _: Any = None) -> Any:
        self.seen[...] += 1
        h = jax.nn.relu(self.Dense_0(x))
        return self.Dense_1(h) + self.seen[...], None


def stored(variables: Any) -> Any:
    return jax.tree.map(lambda p: 2 * p.T, variables)


def seen(variables: Any) -> Any:
    return jax.tree.map(lambda p: jnp.tanh(p.T), variables)


def linens(target: Any, init: bool) -> Any:
    return linen.map_variables(target, "params", seen, stored, init=init, mutable=init)


def ours(target: Any) -> Any:
    return nnm.map_variables(target, trans_in_fn=seen, trans_out_fn=stored)


STACK: dict[str, Any] = {
    "variable_axes": {"params": 0, "batch_stats": 0},
    "split_rngs": {"params": True},
    "length": 3,
}
TARGETS: dict[str, tuple[Any, Any]] = {
    "class": (lambda init: linens(LinenBlock, init), ours(Block)),
    "in a stack": (
        lambda init: linen.scan(linens(LinenBlock, init), **STACK),
        nnm.scan(ours(Block), **STACK),
    ),
    "around a stack": (
        lambda init: linens(linen.scan(LinenBlock, **STACK), init),
        ours(nnm.scan(Block, **STACK)),
    ),
    "around remat": (lambda init: linens(linen.remat(LinenBlock), init), ours(nnm.remat(Block))),
}


class LinenModel(linen.Module):
    target: Any

    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = linen.Dense(4)(x)
        return self.target(self.is_initializing())(5)(x, None)[0]


class Model(nnx.Module):
    def __init__(self, target: Any, *, rngs: nnx.Rngs) -> None:
        self.name = f"{target.__name__}_0"
        self.Dense_0 = nnx.Linear(4, 4, rngs=rngs)
        setattr(self, self.name, target(5, rngs=rngs))

    def __call__(self, x: Any) -> Any:
        return getattr(self, self.name)(self.Dense_0(x), None)[0]


def same(one: Any, other: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    leaves = list(zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))
    assert leaves
    for a, b in leaves:
        assert a.shape == b.shape
        assert bool((a == b).all())


@pytest.mark.parametrize(("linen_target", "target"), TARGETS.values(), ids=TARGETS)
def test_values_outputs_gradients_and_state_are_linens(linen_target: Any, target: Any) -> None:
    old, x, key = LinenModel(linen_target), array(2, 4), jax.random.key(3)
    values = jax.jit(old.init)(key, x)
    same(values, jax.jit(lambda key: nnm.variables_of(nnm.build(Model, target, rngs=key)))(key))
    model = nnm.abstract(Model, target)

    def step(apply: Any) -> Any:
        def loss(params: Any) -> Any:
            y, state = apply({**values, "params": params}, x, mutable=["batch_stats"])
            return (y**2).sum(), (y, state)

        return jax.jit(jax.grad(loss, has_aux=True))(values["params"])

    expected = step(old.apply)
    same(expected, step(lambda *args, **options: nnm.apply(model, *args, **options)))
    assert all(bool(one.any()) for one in jax.tree.leaves(expected))


def test_a_function_sees_the_view_and_what_is_stored_stays() -> None:
    dense = nnx.Linear(3, 3, use_bias=False, rngs=nnx.Rngs(0))
    before = dense.kernel[...]
    tied = nnm.map_variables(
        lambda module, x: module(x), trans_in_fn=lambda v: jax.tree.map(jnp.transpose, v)
    )
    x = array(2, 3)
    assert bool((tied(dense, x) == x @ before.T).all())
    assert dense.kernel[...] is before


def test_built_in_layers_are_counted_under_linens_name() -> None:
    layer = nnm.map_variables(nnm.factory.Dense, trans_out_fn=stored)(
        3, in_features=2, rngs=nnx.Rngs(0)
    )
    assert type(layer).__name__ == "Map_variablesDense"
    assert layer.kernel.shape == (2, 3)  # stored twice: there is no view


def test_other_paths_are_refused() -> None:
    def renamed(variables: Any) -> Any:
        return {"params": {"weight": variables["params"]["kernel"]}}

    with pytest.raises(ValueError, match=r"trans_out_fn made other variables .* 'params/bias'"):
        nnm.map_variables(nnm.factory.Dense, trans_out_fn=renamed)(
            3, in_features=2, rngs=nnx.Rngs(0)
        )


def test_parameters_that_are_mapped_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="maps twice"):
        ours(ours(Block))(5, rngs=nnx.Rngs(0))

    class Around(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            self.inner = ours(Block)(5, rngs=rngs)

    with pytest.raises(ValueError, match="maps twice"):
        ours(Around)(rngs=nnx.Rngs(0))


def test_a_parameter_that_the_call_changes_is_refused() -> None:
    class Changing(nnx.Module):
        def __init__(self) -> None:
            self.w = nnx.Param(jnp.ones(3))

        def __call__(self) -> None:
            self.w[...] = self.w[...] * 2

    with pytest.raises(ValueError, match="changed the parameter 'w'"):
        nnm.map_variables(Changing)()()
