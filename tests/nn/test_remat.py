"""``nnm.remat`` of a class against Linen's two remats: names, values, gradients, program."""

from __future__ import annotations

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx
from flax.linen import partitioning

from nnx_migrate.nn.lifts.remat import remat


class LinenBlock(linen.Module):
    @linen.compact
    def __call__(self, x: Any, wave: bool) -> Any:
        y = linen.Dense(8)(x)
        return jnp.sin(y) if wave else jnp.cos(y)


class Block(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(8, 8, rngs=rngs)
        self.steps = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, x: Any, wave: bool) -> Any:
        y = self.Dense_0(x)
        return jnp.sin(y) if wave else jnp.cos(y)


LinenBlock.__name__ = "Block"


class LinenStack(linen.Module):
    block: Any

    @linen.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = self.block()(x, True)
        return x


class Stack(nnx.Module):
    def __init__(self, block: Any, *, rngs: nnx.Rngs) -> None:
        self.block = block
        for index in range(2):
            setattr(self, f"{block.__name__}_{index}", block(rngs=rngs))

    def __call__(self, x: Any) -> Any:
        for index in range(2):
            x = getattr(self, f"{self.block.__name__}_{index}")(x, True)
        return x


PAIRS = {
    "nn.remat": (
        linen.remat(LinenBlock, static_argnums=(2,)),
        remat(Block, static_argnums=(2,)),
    ),
    "partitioning.remat": (
        partitioning.remat(LinenBlock, static_argnums=(1,)),
        remat(Block, static_argnums=(1,), counts_self=False),
    ),
    "prevent_cse and policy": (
        linen.remat(
            LinenBlock,
            static_argnums=(2,),
            prevent_cse=False,
            policy=jax.checkpoint_policies.dots_saveable,
        ),
        remat(
            Block,
            static_argnums=(2,),
            prevent_cse=False,
            policy=jax.checkpoint_policies.dots_saveable,
        ),
    ),
}


def canonical(text: str) -> str:
    names: dict[str, str] = {}
    text = re.sub(r'\s*\{?jax.result_info = "[^"]*"\}?', "", text)
    return re.sub(r"@([\w.]+)", lambda m: names.setdefault(m.group(1), f"@f{len(names)}"), text)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_values_gradients_and_program_are_linens(pair: tuple[Any, Any]) -> None:
    before, after = pair
    x = jnp.arange(16.0).reshape(2, 8) / 7
    module = LinenStack(before)
    params = module.init(jax.random.key(0), x)["params"]
    graphdef, state, rest = nnx.split(Stack(after, rngs=nnx.Rngs(0)), nnx.Param, ...)
    nnx.replace_by_pure_dict(state, params)
    assert nnx.to_pure_dict(state).keys() == params.keys()

    def linen_loss(params: Any, x: Any) -> Any:
        return module.apply({"params": params}, x).sum()

    def nnx_loss(state: Any, x: Any) -> Any:
        return nnx.merge(graphdef, state, rest, copy=True)(x).sum()

    old, new = (jax.jit(jax.value_and_grad(loss)) for loss in (linen_loss, nnx_loss))
    assert canonical(old.lower(params, x).as_text()) == canonical(new.lower(state, x).as_text())
    pairs = zip(jax.tree.leaves(old(params, x)), jax.tree.leaves(new(state, x)), strict=True)
    assert all(bool((a == b).all()) and bool(jnp.any(a != 0)) for a, b in pairs)


def test_the_call_is_recomputed_in_the_backward_pass() -> None:
    graphdef, state = nnx.split(remat(Block, static_argnums=(2,))(rngs=nnx.Rngs(0)))

    def loss(x: Any) -> Any:
        return nnx.merge(graphdef, state, copy=True)(x, True).sum()

    assert "remat" in str(jax.make_jaxpr(jax.grad(loss))(jnp.ones((1, 8))))


def test_an_update_inside_the_call_reaches_the_module() -> None:
    class Counter(nnx.Module):
        def __init__(self) -> None:
            self.calls = nnx.BatchStat(jnp.zeros(()))

        def __call__(self, x: Any) -> Any:
            self.calls[...] = self.calls[...] + 1
            return x

    counter = remat(Counter)()
    counter(jnp.ones(2))
    assert float(counter.calls[...]) == 1


def test_a_partial_stays_a_partial() -> None:
    block = remat(functools.partial(Block, rngs=nnx.Rngs(0)), static_argnums=2)
    assert isinstance(block, functools.partial)
    assert block()(jnp.ones((1, 8)), False).shape == (1, 8)


def test_an_argument_that_is_not_static_is_traced() -> None:
    with pytest.raises(jax.errors.TracerBoolConversionError):
        remat(Block)(rngs=nnx.Rngs(0))(jnp.ones((1, 8)), True)


def test_a_function_of_the_module_is_wrapped_itself() -> None:
    def body(block: Block, x: Any, wave: bool) -> Any:
        return block(x, wave)

    block = Block(rngs=nnx.Rngs(0))
    x = jnp.ones((1, 8))
    assert bool((remat(body, static_argnums=(2,))(block, x, True) == block(x, True)).all())


@pytest.mark.parametrize("target", [len, Block(rngs=nnx.Rngs(0)), int])
def test_what_is_no_module_class_is_refused(target: Any) -> None:
    with pytest.raises(TypeError, match="expected a transformation to get"):
        remat(target)


@pytest.mark.parametrize(("position", "counts_self"), [(0, True), (-1, True), (-1, False)])
def test_positions_before_the_first_argument_are_refused(position: int, counts_self: bool) -> None:
    with pytest.raises(ValueError, match="static_argnums"):
        remat(Block, static_argnums=position, counts_self=counts_self)


def test_a_function_of_two_modules_updates_both() -> None:
    @remat
    def step(first: Any, second: Any, x: Any) -> Any:
        first.steps.set_value(first.steps[...] + 1)
        second.steps.set_value(second.steps[...] + 2)
        return second(first(x, True), False)

    first, second = Block(rngs=nnx.Rngs(0)), Block(rngs=nnx.Rngs(1))
    x = jnp.ones((2, 8))
    expected = second(first(x, True), False)
    assert bool((step(first, second, x) == expected).all())
    assert (float(first.steps[...]), float(second.steps[...])) == (1, 2)
