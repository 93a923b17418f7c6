"""``nnm.jit`` against ``linen.jit``: names, seeds, values, state, programs, compilations."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx
from flax.core import DenyList

from nnx_migrate import nn as nnm

from .oracle import array, check


@pytest.fixture(autouse=True)
def nothing_is_compiled() -> None:
    """A compiled call keeps the keys that the comparison of programs replaces."""
    jax.clear_caches()


class LinenBlock(linen.Module):
    features: int

    @linen.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        scale = self.param("scale", linen.initializers.normal(), (1, 4))
        h = linen.Dense(self.features)(x * scale)
        return linen.Dense(4)(jax.nn.relu(h)), None


LinenBlock.__name__ = "Block"


class Block(nnx.Module):
    def __init__(self, features: int, *, rngs: nnx.Rngs) -> None:
        self.scale = nnm.param(rngs, nnx.initializers.normal(), (1, 4))
        self.Dense_0 = nnx.Linear(4, features, rngs=rngs)
        self.Dense_1 = nnx.Linear(features, 4, rngs=rngs)

    def __call__(self, x: Any, _: Any = None) -> Any:
        return self.Dense_1(jax.nn.relu(self.Dense_0(x * self.scale[...]))), None


class LinenMethod(linen.Module):
    features: int

    @linen.jit
    @linen.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        scale = self.param("scale", linen.initializers.normal(), (1, 4))
        x, _ = LinenBlock(self.features)(x * scale)
        return LinenBlock(3)(x)


LinenMethod.__name__ = "Method"


class Method(nnx.Module):
    def __init__(self, features: int, *, rngs: nnx.Rngs) -> None:
        self.scale = nnm.param(rngs, nnx.initializers.normal(), (1, 4))
        self.Block_0 = Block(features, rngs=rngs)
        self.Block_1 = Block(3, rngs=rngs)

    @nnm.jit
    def __call__(self, x: Any, _: Any = None) -> Any:
        x, _ = self.Block_0(x * self.scale[...])
        return self.Block_1(x)


STACK: dict[str, Any] = {
    "variable_axes": {"params": 0},
    "split_rngs": {"params": True},
    "length": 3,
}
TARGETS: dict[str, tuple[Any, Any]] = {
    "class": (linen.jit(LinenBlock), nnm.jit(Block)),
    "method": (LinenMethod, Method),
    "class of a method": (linen.jit(LinenMethod), nnm.jit(Method)),
    "inside a stack": (
        linen.scan(linen.jit(LinenBlock), **STACK),
        nnm.scan(nnm.jit(Block), **STACK),
    ),
    "method inside a stack": (linen.scan(LinenMethod, **STACK), nnm.scan(Method, **STACK)),
    "around a stack": (
        linen.jit(linen.scan(LinenBlock, **STACK)),
        nnm.jit(nnm.scan(Block, **STACK)),
    ),
    "inside remat": (linen.remat(linen.jit(LinenBlock)), nnm.remat(nnm.jit(Block))),
}


class LinenModel(linen.Module):
    target: Any

    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = linen.Dense(4)(x)
        for _ in range(2):
            x, _ = self.target(5)(x, None)
        return x


class Model(nnx.Module):
    def __init__(self, target: Any, *, rngs: nnx.Rngs) -> None:
        self.name = target.__name__
        self.Dense_0 = nnx.Linear(4, 4, rngs=rngs)
        for index in range(2):
            setattr(self, f"{self.name}_{index}", target(5, rngs=rngs))

    def __call__(self, x: Any) -> Any:
        x = self.Dense_0(x)
        for index in range(2):
            x, _ = getattr(self, f"{self.name}_{index}")(x, None)
        return x


@pytest.mark.parametrize("pair", TARGETS.values(), ids=TARGETS)
def test_values_gradients_and_program_are_linens(pair: tuple[Any, Any]) -> None:
    # Linen compiles the call in a scan again for every module.
    same_program = pair[1].__name__ not in ("ScanJitBlock", "ScanMethod")
    check(
        LinenModel(pair[0]),
        lambda rngs: Model(pair[1], rngs=rngs),
        array(2, 4),
        same_program=same_program,
    )


@pytest.mark.parametrize("pair", TARGETS.values(), ids=TARGETS)
def test_the_same_seed_gives_linens_parameters(pair: tuple[Any, Any]) -> None:
    old = jax.jit(LinenModel(pair[0]).init)(jax.random.key(3), array(2, 4))
    new = jax.jit(lambda key: nnm.variables_of(nnm.build(Model, pair[1], rngs=key)))(
        jax.random.key(3)
    )
    assert jax.tree.structure(old) == jax.tree.structure(new)
    for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        assert bool((one == other).all())


class LinenNoisy(linen.Module):
    @linen.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        x = linen.Dropout(0.5, deterministic=False)(x)
        x = x + jax.random.normal(self.make_rng("noise"), x.shape)
        return linen.Dropout(0.5, deterministic=False)(x), None


LinenNoisy.__name__ = "Noisy"


class Noisy(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.noise = rngs["noise"].fork()
        self.Dropout_0 = nnm.Dropout(0.5, deterministic=False, rngs=rngs)
        self.Dropout_1 = nnm.Dropout(0.5, deterministic=False, rngs=rngs)

    def __call__(self, x: Any, _: Any = None) -> Any:
        x = self.Dropout_0(x)
        return self.Dropout_1(x + jax.random.normal(self.noise(), x.shape)), None


class LinenOuter(linen.Module):
    inner: Any

    @linen.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        inner = self.inner()
        x, _ = inner(x + jax.random.normal(self.make_rng("noise"), x.shape), None)
        return inner(x, None)


LinenOuter.__name__ = "Outer"


class Outer(nnx.Module):
    def __init__(self, inner: Any, *, rngs: nnx.Rngs) -> None:
        self.noise = rngs["noise"].fork()
        self.name = f"{inner.__name__}_0"
        setattr(self, self.name, inner(rngs=rngs))

    def __call__(self, x: Any, _: Any = None) -> Any:
        inner = getattr(self, self.name)
        x, _ = inner(x + jax.random.normal(self.noise(), x.shape), None)
        return inner(x, None)


SPLIT: dict[str, Any] = {"length": 3, "split_rngs": {"dropout": True, "noise": True}}
DRAWN: dict[str, Any] = {"length": 3, "split_rngs": {"dropout": False, "noise": False}}
NOISY: dict[str, tuple[tuple[Any, Any], tuple[Any, Any]]] = {  # of the outer and inner module
    "in each other": (
        (linen.jit(LinenOuter), nnm.jit(Outer)),
        (linen.jit(LinenNoisy), nnm.jit(Noisy)),
    ),
    "around a loop": (
        (LinenOuter, Outer),
        (linen.jit(linen.scan(LinenNoisy, **SPLIT)), nnm.jit(nnm.scan(Noisy, **SPLIT))),
    ),
    "in a loop": (
        (LinenOuter, Outer),
        (linen.scan(linen.jit(LinenNoisy), **SPLIT), nnm.scan(nnm.jit(Noisy), **SPLIT)),
    ),
    "twice, in a loop with one key": (
        (LinenOuter, Outer),
        (
            linen.scan(linen.jit(linen.jit(LinenNoisy)), **DRAWN),
            nnm.scan(nnm.jit(nnm.jit(Noisy)), **DRAWN),
        ),
    ),
}


class LinenDrawing(linen.Module):
    kind: Any
    inner: Any

    @linen.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x, _ = self.kind(self.inner)(x, None)
        return linen.Dropout(0.5, deterministic=False)(x)


class Drawing(nnx.Module):
    def __init__(self, kind: Any, inner: Any, *, rngs: nnx.Rngs) -> None:
        self.names = [f"{kind.__name__}_{index}" for index in range(2)]
        for name in self.names:
            setattr(self, name, kind(inner, rngs=rngs))
        self.Dropout_0 = nnm.Dropout(0.5, deterministic=False, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        for name in self.names:
            x, _ = getattr(self, name)(x, None)
        return self.Dropout_0(x)


@pytest.mark.parametrize(("outer", "inner"), NOISY.values(), ids=NOISY)
def test_streams_draw_linens_keys_in_a_compiled_call(outer: Any, inner: Any) -> None:
    rngs = {"dropout": jax.random.key(5), "noise": jax.random.key(6)}
    x = array(2, 4)
    expected = LinenDrawing(outer[0], inner[0]).apply({}, x, rngs=rngs)
    model = Drawing(outer[1], inner[1], rngs=nnx.Rngs(0, dropout=1, noise=2))
    for _ in range(2):  # the second time from the compilations of the first
        found = nnm.apply(model, {}, x, rngs=rngs)
        assert bool((expected == found).all())


def test_layers_share_a_compilation_though_their_masks_differ() -> None:
    traced = []

    class Seen(Noisy):
        def __call__(self, x: Any, _: Any = None) -> Any:
            traced.append(x)
            return super().__call__(x)

    kind = nnm.jit(Seen)

    class Model(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            self.first, self.second = kind(rngs=rngs), kind(rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.first(x)[0], self.second(x)[0]

    model = Model(rngs=nnx.Rngs(0, dropout=1, noise=2))
    one, other = nnm.apply(model, {}, jnp.ones((4, 8)), rngs={"dropout": 0, "noise": 1})
    assert len(traced) == 1
    assert bool((one != other).any())


class Counter(nnx.Module):
    traced = 0

    def __init__(self, step: int) -> None:
        self.step = step
        self.seen = nnx.BatchStat(jnp.zeros(()))

    def add(self, x: Any, *, sign: int = 1) -> Any:
        type(self).traced += 1
        self.seen[...] += self.step * sign
        return x + self.seen[...]


def test_modules_of_one_structure_share_a_compilation_and_keep_their_state() -> None:
    class Counted(Counter):
        add = nnm.jit(Counter.add, static_argnames="sign")

    ones, other = [Counted(1), Counted(1)], Counted(2)
    for _ in range(2):
        for one in ones:
            one.add(jnp.ones(()))
    assert Counted.traced == 1
    assert [float(one.seen[...]) for one in ones] == [2.0, 2.0]
    assert float(other.add(jnp.ones(()), sign=-1)) == -1.0
    assert Counted.traced == 2


def test_chosen_methods_are_compiled() -> None:
    kind = nnm.jit(Counter, methods={"add": {"static_argnames": "sign"}})
    assert kind.__name__ == "JitCounter"
    counter = kind(3)
    assert "name=add" in str(jax.make_jaxpr(lambda x: kind(3).add(x))(1.0))
    assert float(counter.add(jnp.ones(()), sign=2)) == 7.0


def test_modules_among_the_arguments_are_lifted_too() -> None:
    class Pair(nnx.Module):
        @nnm.jit
        def __call__(self, x: Any, others: Any) -> Any:
            return others["a"].add(x) + others["b"].add(x)

    shared = Counter(1)
    assert float(Pair()(jnp.zeros(()), {"a": shared, "b": shared})) == 3.0
    assert float(shared.seen[...]) == 2.0


@pytest.mark.parametrize("target", [3, list])
def test_what_is_no_module_class_is_refused(target: Any) -> None:
    with pytest.raises(TypeError, match=r"expected a transformation to get an nnx.Module class"):
        nnm.jit(target)


def test_a_module_among_the_results_is_refused() -> None:
    class Maker(nnx.Module):
        @nnm.jit
        def __call__(self) -> Any:
            return Counter(1)

    with pytest.raises(TypeError, match="found a module"):
        Maker()()


class Asking(nnx.Module):
    def __init__(self) -> None:
        self.v = nnm.variable("state", jnp.zeros(()))

    @nnm.jit
    def __call__(self, x: Any) -> Any:
        more = 10 if nnm.is_mutable_collection(self, "params") else 1
        return x + self.v[...] + more * (100 if nnm.is_initializing() else 1)


def test_what_a_call_may_change_is_asked_anew() -> None:
    model, values, x = Asking(), {"state": {"v": jnp.zeros(())}}, jnp.zeros(2)
    found = [
        nnm.apply(model, values, x)[0],
        nnm.apply(model, values, x, mutable=["params"])[0][0],
        nnm.apply(model, values, x, mutable=DenyList("state"))[0][0],
        nnm.apply(model, values, x, mutable="batch_stats")[0][0],
        model(x)[0],
    ]
    assert list(map(int, found)) == [1, 10, 10, 1, 1]


class Bridging(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.inner = nnm.ToNNX(linen.Dense(3), rngs=rngs)

    @nnm.jit
    def __call__(self, x: Any) -> Any:
        return self.inner(x)


def test_bridged_modules_get_their_variables_inside_a_compiled_call() -> None:
    x = jnp.ones((2, 4))
    model = nnm.lazy_init(Bridging(rngs=nnx.Rngs(0)), x)
    params = nnm.variables_of(model)["params"]["inner"]
    assert params["kernel"].shape == (4, 3)
    assert jnp.allclose(model(x), x @ params["kernel"])
