"""``nnm.scan`` as a decorator of a method against ``linen.scan``."""

from __future__ import annotations

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm

OPTIONS: dict[str, Any] = {"variable_broadcast": "params", "split_rngs": {"params": False}}
AXES = [
    {"in_axes": 1, "out_axes": 1},
    {"in_axes": 0, "out_axes": -1},
    {"in_axes": -2, "out_axes": 0, "reverse": True},
    {"in_axes": 1, "out_axes": 1, "unroll": 2},
]


def _pair(options: dict[str, Any]) -> tuple[Any, Any]:
    class Linen(linen.Module):
        @functools.partial(linen.scan, **options)
        @linen.compact
        def __call__(self, carry: Any, x: Any) -> Any:
            y = linen.Dense(4)(jnp.concatenate([carry, x], -1))
            return jnp.tanh(y), y

    class Native(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            self.Dense_0 = nnx.Linear(7, 4, rngs=rngs)

        @functools.partial(nnm.scan, **options)
        def __call__(self, carry: Any, x: Any) -> Any:
            y = self.Dense_0(jnp.concatenate([carry, x], -1))
            return jnp.tanh(y), y

    return Linen(), Native


def canonical(text: str) -> str:
    names: dict[str, str] = {}
    text = re.sub(r'\s*\{?jax.result_info = "[^"]*"\}?', "", text)
    return re.sub(r"@([\w.]+)", lambda m: names.setdefault(m.group(1), f"@f{len(names)}"), text)


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_values_gradients_and_program_are_linens(axes: dict[str, Any]) -> None:
    module, native = _pair({**OPTIONS, **axes})
    shape = [5, 3]
    shape.insert(axes["in_axes"] if axes["in_axes"] >= 0 else 1, 6)
    x = jnp.sin(jnp.arange(90.0)).reshape(shape)
    carry = jnp.ones((5, 4))
    params = module.init(jax.random.key(0), carry, x)["params"]
    graphdef, state = nnx.split(native(rngs=nnx.Rngs(0)))
    nnx.replace_by_pure_dict(state, params)

    def linen_loss(params: Any, x: Any) -> Any:
        last, ys = module.apply({"params": params}, carry, x)
        return (last.sum() + (ys**2).sum()), ys

    def nnx_loss(state: Any, x: Any) -> Any:
        last, ys = nnx.merge(graphdef, state, copy=True)(carry, x)
        return (last.sum() + (ys**2).sum()), ys

    old, new = (jax.jit(jax.value_and_grad(f, has_aux=True)) for f in (linen_loss, nnx_loss))
    assert canonical(old.lower(params, x).as_text()) == canonical(new.lower(state, x).as_text())
    pairs = zip(jax.tree.leaves(old(params, x)), jax.tree.leaves(new(state, x)), strict=True)
    assert all(a.shape == b.shape and bool((a == b).all()) for a, b in pairs)


def test_carried_variables_are_handed_from_step_to_step() -> None:
    class Counter(nnx.Module):
        def __init__(self) -> None:
            self.count = nnx.BatchStat(jnp.zeros(()))

        @functools.partial(nnm.scan, variable_carry="batch_stats")
        def __call__(self, carry: Any, x: Any) -> Any:
            self.count[...] = self.count[...] + 1
            return carry, x + self.count[...]

    counter = Counter()
    _, ys = counter(None, jnp.zeros(3))
    assert ys.tolist() == [1, 2, 3]
    assert float(counter.count[...]) == 3


def test_a_broadcast_argument_is_passed_whole() -> None:
    class Add(nnx.Module):
        @functools.partial(nnm.scan, in_axes=(0, nnm.broadcast))
        def __call__(self, carry: Any, x: Any, whole: Any) -> Any:
            return carry + 1, x + whole

    carry, ys = Add()(0, jnp.arange(3.0), jnp.ones(2))
    assert int(carry) == 3
    assert ys.shape == (3, 2)


@pytest.mark.parametrize(("split", "distinct"), [(True, 3), (False, 1)])
def test_a_stream_draws_per_step_only_where_it_is_split(split: bool, distinct: int) -> None:
    class Draw(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.noise = nnm.stream(rngs, "noise")

        @functools.partial(nnm.scan, split_rngs={"noise": split})
        def __call__(self, carry: Any, x: Any) -> Any:
            return carry, jax.random.uniform(self.noise()) + 0 * x

    draw = Draw(nnx.Rngs(noise=0))
    first, second = (draw(None, jnp.zeros(3))[1].tolist() for _ in range(2))
    assert len(set(first)) == distinct
    assert not set(first) & set(second)


def test_a_variable_that_no_option_names_is_refused() -> None:
    module, native = _pair({"in_axes": 1})
    assert module is not None
    with pytest.raises(ValueError, match="which the loop does not lift"):
        native(rngs=nnx.Rngs(0))(jnp.ones((5, 4)), jnp.ones((5, 6, 3)))


def test_axes_must_match_the_arguments() -> None:
    class Add(nnx.Module):
        @functools.partial(nnm.scan, in_axes=(0, 0))
        def __call__(self, carry: Any, x: Any) -> Any:
            return carry, x

    with pytest.raises(ValueError, match="different lengths"):
        Add()(0, jnp.arange(3.0))
