"""``nnm.scan`` of a class against ``linen.scan``: paths, seeds, values, gradients, programs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm

from .oracle import array, check

L = 3


class LinenBlock(linen.Module):
    features: int

    @linen.compact
    def __call__(self, x: Any, _: Any) -> Any:
        h = linen.Dense(self.features, bias_init=linen.initializers.normal())(x)
        h = linen.Dense(self.features)(jax.nn.relu(h))
        return x + h, h.mean()


LinenBlock.__name__ = "Block"  # automatic names are made of it


class Block(nnx.Module):
    def __init__(self, features: int, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(
            in_features, features, bias_init=nnx.initializers.normal(), rngs=rngs
        )
        self.Dense_1 = nnx.Linear(features, features, rngs=rngs)

    def __call__(self, x: Any, _: Any) -> Any:
        h = self.Dense_0(x)
        h = self.Dense_1(jax.nn.relu(h))
        return x + h, h.mean()


class LinenStack(linen.Module):
    options: Any
    block: Any = LinenBlock

    @linen.compact
    def __call__(self, x: Any, xs: Any = None) -> Any:
        return linen.scan(self.block, **self.options)(x.shape[-1])(x, xs)


class Stack(nnx.Module):
    def __init__(self, options: Any, block: Any = Block, size: int = 4, *, rngs: nnx.Rngs) -> None:
        self.name = "Scan" + block.__name__ + "_0"
        scanned = nnm.scan(block, **options)
        setattr(self, self.name, scanned(size, in_features=size, rngs=rngs))

    def __call__(self, x: Any, xs: Any = None) -> Any:
        return getattr(self, self.name)(x, xs)


OVER_LAYERS: dict[str, Any] = {
    "variable_axes": {"params": 0},
    "split_rngs": {"params": True},
    "length": L,
}
OPTIONS = {
    "layers": OVER_LAYERS,
    "second axis": {**OVER_LAYERS, "variable_axes": {"params": 1}},
    "last axis": {**OVER_LAYERS, "variable_axes": {"params": -1}},
    "reverse": {**OVER_LAYERS, "reverse": True},
    "unroll": {**OVER_LAYERS, "unroll": 3},
    "same keys": {**OVER_LAYERS, "split_rngs": {"params": False}},
    "all collections": {**OVER_LAYERS, "variable_axes": {True: 0}},
    "no constancy check": {**OVER_LAYERS, "check_constancy_invariants": False},
    "time": {"variable_broadcast": "params", "split_rngs": {"params": False}, "length": L},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_values_gradients_and_program_are_linens(options: dict[str, Any]) -> None:
    check(LinenStack(options), lambda rngs: Stack(options, rngs=rngs), array(2, 4))


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_same_seed_gives_linens_parameters(options: dict[str, Any], jitted: bool) -> None:
    x = array(2, 4)
    module = LinenStack(options)

    def old() -> Any:
        return module.init(jax.random.key(3), x)

    def new() -> Any:
        return nnm.variables_of(nnm.build(Stack, options, rngs=jax.random.key(3)))

    expected, found = (jax.jit(one)() if jitted else one() for one in (old, new))
    assert jax.tree.structure(expected) == jax.tree.structure(found)
    for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        assert one.shape == other.shape
        assert bool((one == other).all())


class LinenSteps(linen.Module):
    """A layer of its own per step, over sequences of inputs along other axes."""

    options: Any

    @linen.compact
    def __call__(self, carry: Any, *xs: Any) -> Any:
        return linen.scan(LinenStep, **self.options)(4, name="steps")(carry, *xs)


class LinenStep(linen.Module):
    features: int

    @linen.compact
    def __call__(self, carry: Any, x: Any, whole: Any) -> Any:
        h = linen.Dense(self.features)(jnp.concatenate([carry, x], -1))
        return jnp.tanh(h + whole), (h, h.mean(-1))


class Step(nnx.Module):
    def __init__(self, features: int, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(in_features, features, rngs=rngs)

    def __call__(self, carry: Any, x: Any, whole: Any) -> Any:
        h = self.Dense_0(jnp.concatenate([carry, x], -1))
        return jnp.tanh(h + whole), (h, h.mean(-1))


class Steps(nnx.Module):
    def __init__(self, options: Any, *, rngs: nnx.Rngs) -> None:
        self.steps = nnm.scan(Step, **options)(4, in_features=7, rngs=rngs)

    def __call__(self, carry: Any, *xs: Any) -> Any:
        return self.steps(carry, *xs)


AXES = [
    {"in_axes": (1, linen.broadcast), "out_axes": 1},
    {"in_axes": (1, linen.broadcast), "out_axes": (-1, 0)},
    {"in_axes": (-2, 0), "out_axes": 0},
    {"in_axes": (1, linen.broadcast), "out_axes": 0, "length": 6, "reverse": True},
]


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize(
    "axes", AXES, ids=["shared argument", "outputs at two axes", "from the end", "reversed"]
)
def test_inputs_and_outputs_have_their_axes(axes: dict[str, Any], stacked: bool) -> None:
    lifted = {"variable_axes": {"params": 0}, "split_rngs": {"params": True}, "length": 6}
    shared = {"variable_broadcast": "params", "split_rngs": {"params": False}}
    options = {**axes, **(lifted if stacked else shared)}
    whole = array(1, 4) if linen.broadcast in axes["in_axes"] else array(6, 1, 4)
    swapped = tuple(nnm.broadcast if one is linen.broadcast else one for one in axes["in_axes"])
    check(
        LinenSteps(options),
        lambda rngs: Steps({**options, "in_axes": swapped}, rngs=rngs),
        array(5, 4),
        array(5, 6, 3),
        whole,
    )


class LinenState(linen.Module):
    """Statistics and a cache that the call changes, and a dropout."""

    @linen.compact
    def __call__(self, x: Any, _: Any) -> Any:
        h = linen.Dense(4)(x)
        h = linen.BatchNorm(use_running_average=False)(h)
        seen = self.variable("cache", "seen", jnp.zeros, (4,))
        if not self.is_initializing():
            seen.value = seen.value + h.sum(0)
        h = linen.Dropout(0.4, deterministic=False)(h)
        return x + jax.nn.relu(h), seen.value


class State(nnx.Module):
    def __init__(self, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(in_features, 4, rngs=rngs)
        self.BatchNorm_0 = nnm.BatchNorm(use_running_average=False, in_features=4, rngs=rngs)
        self.seen = nnm.variable("cache", jnp.zeros((4,)))
        self.Dropout_0 = nnm.Dropout(0.4, deterministic=False, rngs=rngs)

    def __call__(self, x: Any, _: Any) -> Any:
        h = self.Dense_0(x)
        h = self.BatchNorm_0(h)
        self.seen.set_value(self.seen[...] + h.sum(0))
        h = self.Dropout_0(h)
        return x + jax.nn.relu(h), self.seen[...]


LinenState.__name__ = "State"
STATES = {
    "stacked": {
        "variable_axes": {"params": 0, "batch_stats": 0, "cache": 1},
        "split_rngs": {"params": True, "dropout": True},
        "length": L,
    },
    "carried statistics": {
        "variable_axes": {("params", "cache"): 0},
        "variable_carry": "batch_stats",
        "split_rngs": {"params": True, "dropout": False},
        "length": L,
    },
}


class LinenStateStack(linen.Module):
    options: Any
    remat: bool = False

    @linen.compact
    def __call__(self, x: Any) -> Any:
        block = linen.remat(LinenState, prevent_cse=False) if self.remat else LinenState
        return linen.scan(block, **self.options)(name="layers")(x, None)


class StateStack(nnx.Module):
    def __init__(self, options: Any, remat: bool = False, *, rngs: nnx.Rngs) -> None:
        block = nnm.remat(State, prevent_cse=False) if remat else State
        self.layers = nnm.scan(block, **options)(in_features=4, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.layers(x, None)


@pytest.mark.parametrize("remat", [False, True])
def test_stacked_state_is_updated_as_linens(remat: bool) -> None:
    options = STATES["stacked"]
    check(
        LinenStateStack(options, remat),
        lambda rngs: StateStack(options, remat, rngs=rngs),
        array(2, 4),
        mutable=("batch_stats", "cache"),
        same_program=False,  # streams of dropout are arguments of the NNX program
    )


def test_carried_statistics_pass_from_layer_to_layer() -> None:
    options = STATES["carried statistics"]

    class Fixed(linen.Module):
        """Linen needs carried variables before its loop."""

        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.scan(LinenState, **options)(name="layers")(x, None)

    stack = StateStack(options, rngs=nnx.Rngs(0))
    x = array(2, 4)
    variables = nnm.variables_of(stack)
    assert variables["batch_stats"]["layers"]["BatchNorm_0"]["mean"].shape == (4,)
    assert variables["params"]["layers"]["Dense_0"]["kernel"].shape == (L, 4, 4)
    rngs = {"dropout": jax.random.key(1)}
    old = Fixed().apply(variables, x, rngs=rngs, mutable=["batch_stats", "cache"])[1]
    new = nnm.apply(stack, variables, x, rngs=rngs, mutable=["batch_stats", "cache"])[1]
    for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        assert one.shape == other.shape
    assert bool(jnp.any(new["batch_stats"]["layers"]["BatchNorm_0"]["mean"] != 0))


class LinenNested(linen.Module):
    inner: Any
    outer: Any

    @linen.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        return linen.scan(LinenRow, **self.outer)(self.inner, name="rows")(x, None)


class LinenRow(linen.Module):
    inner: Any

    @linen.compact
    def __call__(self, x: Any, _: Any) -> Any:
        x = linen.Dense(4, name="first")(x)
        return linen.scan(LinenBlock, **self.inner)(4)(x, None)


class Row(nnx.Module):
    def __init__(self, inner: Any, *, rngs: nnx.Rngs) -> None:
        self.inner = nnx.static(inner)
        self.first = nnx.Linear(4, 4, rngs=rngs)
        self.ScanBlock_0 = nnm.scan(Block, **inner)(4, in_features=4, rngs=rngs)

    def __call__(self, x: Any, _: Any) -> Any:
        return self.ScanBlock_0(self.first(x), None)


class Nested(nnx.Module):
    def __init__(self, inner: Any, outer: Any, *, rngs: nnx.Rngs) -> None:
        self.rows = nnm.scan(Row, **outer)(inner, rngs=rngs)

    def __call__(self, x: Any, _: Any = None) -> Any:
        return self.rows(x, None)


TIME: dict[str, Any] = {
    "variable_broadcast": "params",
    "split_rngs": {"params": False},
    "length": 2,
}
NESTED = {
    "stack of stacks": (OVER_LAYERS, {**OVER_LAYERS, "length": 2}),
    "stacks along other axes": (
        {**OVER_LAYERS, "variable_axes": {"params": 1}},
        {**OVER_LAYERS, "length": 2, "variable_axes": {"params": -1}},
    ),
    "stack in time": (OVER_LAYERS, TIME),
    "time in stack": (TIME, OVER_LAYERS),
}


@pytest.mark.parametrize(("inner", "outer"), NESTED.values(), ids=NESTED)
def test_nested_scans(inner: dict[str, Any], outer: dict[str, Any]) -> None:
    frozen = nnm.freeze(inner)
    x = array(2, 4)
    check(LinenNested(inner, outer), lambda rngs: Nested(frozen, outer, rngs=rngs), x)
    old = jax.jit(LinenNested(inner, outer).init)(jax.random.key(3), x)
    new = jax.jit(
        lambda: nnm.variables_of(nnm.build(Nested, frozen, outer, rngs=jax.random.key(3)))
    )()
    for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        assert bool((one == other).all())


def test_the_stacking_axis_is_recorded_and_joins_the_names() -> None:
    class Named(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            init = nnm.with_logical_partitioning(nnx.initializers.normal(), ("embed", "mlp"))
            self.kernel = nnx.Param(init(rngs.params(), (4, 4)), logical_axes=("embed", "mlp"))
            self.scale = nnx.Param(jnp.ones(4))

        def __call__(self, x: Any, _: Any) -> Any:
            seen.append(self.kernel.get_metadata())
            return x @ self.kernel[...] * self.scale[...][None], None

    seen: list[dict[str, Any]] = []
    options = {**OVER_LAYERS, "variable_axes": {"params": 1}}
    named = {nnx.PARTITION_NAME: "layers"}
    layers = nnm.scan(Named, **options, metadata_params=named)(rngs=nnx.Rngs(0))
    expected = {"partition_name": "layers", "param_scan_axis": 1}
    assert layers.kernel.get_metadata().items() >= expected.items()
    assert layers.kernel.get_metadata()["logical_axes"] == ("embed", "layers", "mlp")
    assert layers.scale.get_metadata().items() >= expected.items()
    assert layers.kernel.shape == (4, L, 4)
    layers(jnp.ones((2, 4)), None)
    assert seen[0]["logical_axes"] == ("embed", "mlp")
    assert not seen[0].keys() & expected.keys()
    assert layers.kernel.get_metadata()["logical_axes"] == ("embed", "layers", "mlp")
    with pytest.raises(ValueError, match="expected the name of the new axis"):
        nnm.scan(Named, **options)(rngs=nnx.Rngs(0))


def test_streams_advance_between_calls_and_differ_between_layers() -> None:
    class Noise(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.noise = nnm.stream(rngs, "noise")

        def __call__(self, carry: Any, _: Any) -> Any:
            return carry, jax.random.uniform(self.noise()) + jax.random.uniform(self.noise())

    for split, distinct in ((True, L), (False, 1)):
        noisy = nnm.scan(Noise, split_rngs={"noise": split}, length=L)(rngs=nnx.Rngs(noise=0))
        first, second = (noisy(None, None)[1].tolist() for _ in range(2))
        assert len(set(first)) == len(set(second)) == distinct
        assert not set(first) & set(second)


class LinenSower(linen.Module):
    @linen.compact
    def __call__(self, x: Any, _: Any) -> Any:
        x = linen.Dense(4)(x)
        self.sow("intermediates", "seen", x)
        self.sow("losses", "balance", x.mean())
        return x, None


class Sower(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(4, 4, rngs=rngs)

    def __call__(self, x: Any, _: Any) -> Any:
        x = self.Dense_0(x)
        nnm.sow(self, "intermediates", "seen", x)
        nnm.sow(self, "losses", "balance", x.mean())
        return x, None


@pytest.mark.parametrize("remat", [False, True])
@pytest.mark.parametrize("sown", [{"intermediates": 0, "losses": 0}, {"losses": 0}, {}], ids=str)
def test_what_is_sown_inside_arrives_with_its_values(sown: dict[str, int], remat: bool) -> None:
    options = {**OVER_LAYERS, "variable_axes": {"params": 0, **sown}}

    class LinenModel(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            block = linen.remat(LinenSower) if remat else LinenSower
            return linen.scan(block, **options)(name="layers")(x, None)[0]

    class Model(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            block = nnm.remat(Sower) if remat else Sower
            self.layers = nnm.scan(block, **options)(rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.layers(x, None)[0]

    x, model = array(2, 4), Model(rngs=nnx.Rngs(0))
    variables, names = nnm.variables_of(model), ["intermediates", "losses"]
    old = LinenModel().apply(variables, x, mutable=names)
    new = nnm.apply(model, variables, x, mutable=names)
    assert jax.tree.structure(old) == jax.tree.structure(new)
    for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        assert one.shape == other.shape
        assert bool((one == other).all())


@pytest.mark.parametrize("options", [OVER_LAYERS, TIME], ids=["layers", "time"])
def test_rematerialised_methods_inside_return_no_parameters(options: dict[str, Any]) -> None:
    class Cell(Block):
        @nnm.remat
        def __call__(self, x: Any, _: Any) -> Any:
            return super().__call__(x, None)

    scanned = nnm.scan(Cell, **options)(4, in_features=4, rngs=nnx.Rngs(0))
    plain = nnm.scan(Block, **options)(4, in_features=4, rngs=nnx.Rngs(0))
    kernel = scanned.Dense_0.kernel.get_value()
    for one, other in zip(scanned(array(2, 4), None), plain(array(2, 4), None), strict=True):
        assert bool((one == other).all())
    assert scanned.Dense_0.kernel.get_value() is kernel


class LinenDrop(linen.Module):
    @linen.compact
    def __call__(self, x: Any, _: Any) -> Any:
        drop = linen.Dropout(0.5, deterministic=False, name="drop")
        x = drop(x + 1) + linen.Dropout(0.3, deterministic=False, name="more")(x)
        return x, drop(x)


class Drop(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.drop = nnm.Dropout(0.5, deterministic=False, rngs=rngs)
        self.more = nnm.Dropout(0.3, deterministic=False, rngs=rngs)

    def __call__(self, x: Any, _: Any) -> Any:
        x = self.drop(x + 1) + self.more(x)
        return x, self.drop(x)


@pytest.mark.parametrize(
    ("split", "nested", "remat"),
    [(True, False, False), (False, False, True), (True, True, True), (False, True, False)],
)
def test_the_same_seed_gives_linens_masks(split: bool, nested: bool, remat: bool) -> None:
    options = {"split_rngs": {"dropout": split}, "length": L}

    class LinenModel(linen.Module):
        @linen.compact
        def __call__(self, x: Any, _: Any = None) -> Any:
            block = linen.remat(LinenDrop) if remat else LinenDrop
            layers = linen.scan(block, **options)(name="layers")
            x, first = layers(x, None)
            x, second = layers(x, None)
            return x, (first, second)

    class Model(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            self.layers = nnm.scan(nnm.remat(Drop) if remat else Drop, **options)(rngs=rngs)

        def __call__(self, x: Any, _: Any = None) -> Any:
            x, first = self.layers(x, None)
            x, second = self.layers(x, None)
            return x, (first, second)

    class LinenOuter(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.scan(LinenModel, **options)(name="outer")(x, None)

    class Outer(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            self.outer = nnm.scan(Model, **options)(rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.outer(x, None)

    module, native = (LinenOuter(), Outer) if nested else (LinenModel(), Model)
    x, keys = array(4, 8), {"dropout": jax.random.key(5)}
    old = module.apply({}, x, rngs=keys)
    new = nnm.apply(native(rngs=nnx.Rngs(0)), {}, x, rngs=keys)
    for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        assert bool((one == other).all())
        assert bool((one == 0).any())
