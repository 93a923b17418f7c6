"""Lazy modules inside of an explicit one, in calls of Linen's style: what Linen has in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import nnx_migrate.linen
from nnx_migrate import nn as nnm
from nnx_migrate.linen import build, explicit, lazy

X = jnp.arange(12.0).reshape(4, 3) / 7 - 0.5
KEYS = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
DROPOUT = {"dropout": jax.random.key(2)}
MUTABLE = ["batch_stats", "count", "losses"]


def leaf_of(nn: Any) -> Any:
    """A class with parameters, statistics, a counter, dropout and something sown."""

    class Leaf(nn.Module):  # type: ignore[misc]
        features: int

        @nn.compact
        def __call__(self, x: Any, train: bool = True) -> Any:
            calls = self.variable("count", "calls", lambda: jnp.zeros((), jnp.int32))
            if not self.is_initializing():
                calls.value = calls.value + 1
            x = self.embed(x)
            self.sow("losses", "size", jnp.abs(x).sum())
            x = nn.BatchNorm(use_running_average=not train)(x)
            return nn.Dropout(0.5, deterministic=not train)(x)

        @nn.compact
        def embed(self, x: Any) -> Any:
            return nn.Dense(self.features, name="embedding")(x)

    return Leaf


LinenLeaf, Leaf = leaf_of(flax.linen), leaf_of(nnx_migrate.linen)


class LinenInner(flax.linen.Module):
    features: int

    def setup(self):
        self.leaf = LinenLeaf(self.features)
        self.out = flax.linen.Dense(self.features)

    def __call__(self, x, train=True):
        return self.out(self.leaf(x, train))


class LinenNet(flax.linen.Module):
    features: int

    def setup(self):
        self.first = flax.linen.Dense(self.features)
        self.second = LinenLeaf(self.features)
        self.inner = LinenInner(self.features)

    def __call__(self, x, train=True):
        x = self.second(self.first(x), train)
        x = self.second(self.inner(x, train), train)
        self.sow("losses", "total", x.sum())
        return x

    def part(self):
        return self.second


class Inner(nnx.Module):
    def __init__(self, features, *, rngs):
        self.leaf = Leaf(features)
        self.out = nnx.Linear(features, features, rngs=rngs)

    def __call__(self, x, train=True):
        return self.out(self.leaf(x, train))


class Net(nnx.Module):
    def __init__(self, features, *, in_features, rngs):
        self.first = nnx.Linear(in_features, features, rngs=rngs)
        self.second = Leaf(features)
        self.inner = Inner(features, rngs=rngs)

    def __call__(self, x, train=True):
        x = self.second(self.first(x), train)
        x = self.second(self.inner(x, train), train)
        nnm.sow(self, "losses", "total", x.sum())
        return x

    def part(self):
        return self.second


def listed(tree: Any) -> list[tuple[str, Any]]:
    """Paths in the order of the dicts, and bits."""
    found = []

    def walk(path: str, one: Any) -> None:
        if isinstance(one, dict | tuple):
            items = one.items() if isinstance(one, dict) else enumerate(one)
            for name, value in items:
                walk(f"{path}/{name}", value)
        else:
            found.append((path, jax.device_get(one).tobytes()))

    walk("", tree)
    return found


@pytest.fixture(scope="module")
def variables() -> Any:
    return LinenNet(5).init(KEYS, X)


def trained(model: Any, variables: Any) -> Any:
    return model.apply(variables, X, rngs=DROPOUT, mutable=MUTABLE)


def gradients(model: Any, variables: Any) -> Any:
    def loss(params: Any) -> Any:
        return trained(model, {**variables, "params": params})[0].sum()

    return jax.grad(loss)(variables["params"])


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "init": lambda model, _: model.init(KEYS, X),
    "init under jit": lambda model, _: jax.jit(model.init)(KEYS, X),
    "training, with all that changes": trained,
    "under jit": lambda model, variables: jax.jit(lambda one: trained(model, one))(variables),
    "under vmap": lambda model, variables: jax.vmap(
        lambda x: model.apply(variables, x, False, mutable="count")
    )(jnp.stack([X, X + 1])),
    "gradients": gradients,
    "evaluation": lambda model, variables: model.apply(variables, X, False, mutable=["count"])[0],
    "one call after the other": lambda model, variables: trained(
        model, {**variables, **trained(model, variables)[1]}
    ),
    "a submodule's method": lambda model, variables: model.apply(
        variables, X, method=lambda one, x: one.second.embed(one.first(x))
    ),
    "a submodule that a method returns": lambda model, variables: model.apply(
        variables, X, method=lambda one, x: one.part().embed(one.first(x))
    ),
    "what a submodule holds": lambda model, variables: model.apply(
        variables, method=lambda one: one.second.variables["params"]
    ),
    "a part, initialised": lambda model, _: model.init(
        KEYS, X, method=lambda one, x: one.inner.leaf(x)
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_calls_give_what_linen_gives(call: Callable[[Any, Any], Any], variables: Any) -> None:
    ours, linens = call(lazy(Net)(5), variables), call(LinenNet(5), variables)
    assert listed(ours) == listed(linens)
    assert listed(ours)


@pytest.mark.parametrize("variables", [{}, {"params": {}}])
def test_what_lacks_is_linens_error(variables: Any) -> None:
    with pytest.raises(flax.errors.ScopeCollectionNotFound):
        lazy(Net)(5).apply(variables, X, False)


def test_a_change_of_what_is_not_mutable_is_linens_error(variables: Any) -> None:
    with pytest.raises(flax.errors.ModifyScopeVariableError):
        lazy(Net)(5).apply(variables, X, rngs=DROPOUT)


def test_tabulations_have_one_row_for_each_call() -> None:
    table = lazy(Net)(5).tabulate(KEYS, X, console_kwargs={"width": 200})
    rows = [line for line in table.splitlines() if "Leaf" in line]
    assert len(rows) == 2  # a second call of a module has no row, as in Linen


def test_a_built_module_holds_what_init_gives(variables: Any) -> None:
    built = build(lazy(Net)(5), X, rngs=KEYS)
    wanted = LinenNet(5).apply(variables, X, False, mutable=["count"])[0]
    assert jnp.array_equal(built(X, False), wanted)


def test_the_explicit_module_holds_what_init_gives(variables: Any) -> None:
    module = explicit(lazy(Net)(5), X, rngs=KEYS)
    assert type(module) is Net
    assert jnp.array_equal(
        module.second.embedding.kernel[...], variables["params"]["second"]["embedding"]["kernel"]
    )
    assert jnp.array_equal(module.second.BatchNorm_0.mean[...], jnp.zeros(5))  # as initialised
    wanted = LinenNet(5).apply(variables, X, False, mutable=["count"])[0]
    assert jnp.array_equal(module(X, False), wanted)


def test_a_call_of_the_explicit_module_alone_says_how_to_build_it() -> None:
    with pytest.raises(flax.errors.CallCompactUnboundModuleError) as error:
        Net(5, in_features=3, rngs=nnx.Rngs(0))(X)
    assert "nnx_migrate.linen.build" in error.value.__notes__[0]


class Holder(nnx.Module):
    def __init__(self, features, *, in_features, rngs):
        self.first = nnx.Linear(in_features, features, rngs=rngs)
        self.second = Leaf(features)
        self.inner = lazy(Inner)(features)

    def __call__(self, x, train=True):
        x = self.second(self.first(x), train)
        x = self.second(self.inner(x, train), train)
        nnm.sow(self, "losses", "total", x.sum())
        return x


def test_the_lazy_form_of_an_explicit_class_is_a_lazy_submodule_too(variables: Any) -> None:
    ours, linens = lazy(Holder)(5), LinenNet(5)
    assert listed(ours.init(KEYS, X)) == listed(linens.init(KEYS, X))
    assert listed(trained(ours, variables)) == listed(trained(linens, variables))


def whole_after_part(one: Any, x: Any) -> Any:
    one.inner.leaf(x)
    return one(x)


def test_a_call_after_that_of_a_part_makes_the_rest() -> None:
    ours, linens = (
        model.init(KEYS, X, method=whole_after_part) for model in (lazy(Net)(3), LinenNet(3))
    )
    assert sorted(listed(ours)) == sorted(listed(linens))
