"""Helpers that stand for what Linen does at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from flax.core import FrozenDict

from nnx_migrate import nn as nnm


class Holder(nnx.Module):
    pass


def linear(n: int = 2) -> nnx.Linear:
    return nnx.Linear(n, n, rngs=nnx.Rngs(0))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, [2]], (1, (2,))),
        ({"a": [1]}, FrozenDict({"a": (1,)})),  # type: ignore[no-untyped-call]
        ("abc", "abc"),
        (None, None),
    ],
)
def test_freeze_does_what_linen_does_to_fields(value: Any, expected: Any) -> None:
    assert nnm.freeze(value) == expected


def test_elements_become_attributes_named_as_linen_names_them() -> None:
    owner = Holder()
    nnm.set_submodules(owner, "layers", [linear(), (linear(), None), nnm.named("x", linear())])
    names = sorted(key for key, one in vars(owner).items() if isinstance(one, nnx.Linear))
    assert names == ["layers_0", "layers_1_0", "x"]
    read = nnm.get_submodules(owner, "layers")
    assert read[0] is owner.layers_0
    assert read[1] == (owner.layers_1_0, None)
    assert read[2] is owner.x


def test_a_submodule_that_is_held_already_keeps_its_attribute() -> None:
    owner = Holder()
    owner.first = linear()
    nnm.set_submodules(owner, "table", {"a": owner.first, "b": linear()})
    assert nnm.get_submodules(owner, "table")["a"] is owner.first
    assert not hasattr(owner, "table_a")
    assert hasattr(owner, "table_b")


def test_submodules_survive_split_and_merge() -> None:
    owner = Holder()
    nnm.set_submodules(owner, "layers", [linear(), linear()])
    graph, state = nnx.split(owner)
    merged = nnx.merge(graph, state)
    assert len(nnm.get_submodules(merged, "layers")) == 2
    assert sorted(state) == ["layers_0", "layers_1"]


def test_arrays_made_while_tracing_are_data() -> None:
    graphs = []

    @jax.jit
    def make() -> Any:
        owner = Holder()
        owner.mask = nnm.constant(jnp.ones(3))
        graph, state = nnx.split(owner)
        graphs.append(graph)
        return state

    state = make()
    found = jax.jit(lambda s: nnx.merge(graphs[0], s).mask * 2)(state)
    np.testing.assert_array_equal(found, 2 * np.ones(3))
    assert nnm.constant(7) == 7


@pytest.mark.parametrize("make", [np.ones, jnp.ones])
def test_containers_of_arrays_are_data(make: Callable[..., Any]) -> None:
    owner = Holder()
    owner.rows = nnm.as_field([make(3), {"a": make(2)}])
    assert [one.shape for one in jax.tree.leaves(nnx.state(owner))] == [(3,), (2,)]
    owner.names = nnm.as_field(["a", 1])
    assert owner.names == ("a", 1)


def test_a_lazy_variable_is_made_once() -> None:
    owner = Holder()
    assert not nnm.has_variable(owner, "cache", "key")
    made = nnm.lazy_variable(owner, "cache", "key", jnp.zeros, (2,))
    made[...] = jnp.ones(2)
    again = nnm.lazy_variable(owner, "cache", "key", jnp.zeros, (2,))
    assert again is made
    assert nnm.has_variable(owner, "cache", "key")
    assert not nnm.has_variable(owner, "batch_stats", "key")


def test_a_lazy_variable_refuses_a_taken_name_and_a_missing_initialiser() -> None:
    owner = Holder()
    owner.size = 3
    with pytest.raises(ValueError, match="to be a variable of 'cache', found int"):
        nnm.lazy_variable(owner, "cache", "size", jnp.zeros, ())
    with pytest.raises(ValueError, match="no variable 'key' in collection 'cache'"):
        nnm.lazy_variable(owner, "cache", "key", None)


def test_sow_stores_only_under_capture() -> None:
    class Model(nnx.Module):
        def __call__(self, x: jax.Array) -> jax.Array:
            nnm.sow(self, col="intermediates", name="seen", value=x)  # Linen's words
            return 2 * x

    model = Model()
    assert float(model(jnp.ones(()))) == 2.0
    assert not hasattr(model, "seen")
    _, seen = nnx.capture(model, nnx.Intermediate)(jnp.ones(()))
    assert float(seen["seen"][0]) == 1.0


def test_a_submodule_runs_abstractly_and_keeps_its_state() -> None:
    norm = nnx.BatchNorm(3, use_running_average=False, rngs=nnx.Rngs(0))
    x = nnm.abstract_array((2, 4, 3))
    out = nnm.abstractly(lambda x: nnm.copied(norm)(x).sum(axis=1), x)
    assert out.shape == (2, 3)
    np.testing.assert_array_equal(norm.mean[...], jnp.zeros(3))
    norm(jnp.ones((2, 3)))  # and no tracer is left in it
    np.testing.assert_array_equal(norm.mean[...], jnp.full(3, 0.01))


def test_a_submodule_that_waits_for_its_mode_runs_abstractly() -> None:
    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.norm = nnm.factory.BatchNorm(in_features=3, rngs=rngs)
            self.drop = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.drop(self.norm(x))

    model = Model(nnx.Rngs(0))
    out = nnm.abstractly(lambda x: nnm.copied(model)(x), nnm.abstract_array((2, 3)))
    assert out.shape == (2, 3)
    assert model.norm.use_running_average is None
    with pytest.raises(ValueError, match="use_running_average"):
        model(jnp.ones((2, 3)))


def test_a_linen_submodule_behind_a_bridge_runs_abstractly_before_its_first_call() -> None:
    bridged = nnx.bridge.ToNNX(linen.Dense(5), rngs=nnx.Rngs(0))
    out = nnm.abstractly(lambda x: nnm.copied(bridged)(x), nnm.abstract_array((2, 3)))
    assert out.shape == (2, 5)
    assert not nnx.state(bridged, nnx.Param)


def test_inputs_are_integers_or_keys_where_floats_do_not_do() -> None:
    embed = nnx.Embed(4, 3, rngs=nnx.Rngs(0))
    x, ids, key = nnm.abstract_array((2, 3)), nnm.abstract_array((2,)), nnm.abstract_array(())
    out = nnm.abstractly(lambda ids, x: x + nnm.copied(embed)(ids), ids, x)
    assert (out.shape, out.dtype) == ((2, 3), jnp.float32)
    out = nnm.abstractly(lambda ids, key, x: x[ids] * jax.random.uniform(key, x.shape), ids, key, x)
    assert out.shape == (2, 3)
    with pytest.raises(ValueError, match="could not be broadcast"):
        nnm.abstractly(lambda ids, x: ids + x, ids, x)


def test_several_arrays_come_as_they_were_given() -> None:
    arrays = nnm.abstract_array({"a": [(2, 3), (2, 5)], "b": (), "c": None})
    assert jax.tree.map(jnp.shape, arrays) == {"a": [(2, 3), (2, 5)], "b": (), "c": None}
    out = nnm.abstractly(lambda xs: jnp.concatenate(xs["a"], axis=-1), arrays)
    assert out.shape == (2, 8)


def test_what_no_dtype_mends_raises_however_many_arrays_there_are() -> None:
    arrays = [nnm.abstract_array((number, 2)) for number in range(1, 60)]
    with pytest.raises(TypeError, match="concatenate"):
        nnm.abstractly(lambda *given: jnp.concatenate(given, axis=1), *arrays)


def test_a_flag_that_is_either_must_leave_the_shape_as_it_is() -> None:
    x = nnm.abstract_array((2, 3))
    same = nnm.abstractly(lambda train, x: x.T * 2 if train else x.T, nnm.EITHER, x)
    assert same.shape == (3, 2)
    with pytest.raises(ValueError, match="expected one shape whatever the flags of the call are"):
        nnm.abstractly(lambda x, train: x.T if train else x, x, nnm.EITHER)


def test_what_is_no_module_is_not_copied() -> None:
    assert nnm.copied(jnp.tanh) is jnp.tanh


def test_with_params_computes_with_the_given_kernel() -> None:
    kernel = jnp.arange(6.0).reshape(2, 3)
    layer = nnm.with_params(
        lambda rngs: nnx.Linear(2, 3, use_bias=False, rngs=rngs), {"kernel": kernel}
    )
    np.testing.assert_array_equal(layer(jnp.ones((1, 2))), jnp.ones((1, 2)) @ kernel)


def test_with_params_wants_exactly_the_layers_parameters() -> None:
    with pytest.raises(ValueError, match=r"expected parameters \['bias', 'kernel'\]"):
        nnm.with_params(lambda rngs: nnx.Linear(2, 3, rngs=rngs), {"kernel": jnp.ones((2, 3))})


class Perturbed(nnx.Module):
    def __call__(self, x: jax.Array) -> jax.Array:
        return nnm.perturb(self, "p", x)


class Putting(nnx.Module):
    def __init__(self) -> None:
        self.inner = Perturbed()

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.inner(x)


class Plain(nnx.Module):
    def __init__(self) -> None:
        self.dense = nnx.Linear(2, 3, rngs=nnx.Rngs(0))

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.dense(x)


@pytest.mark.parametrize(("build", "makes"), [(Perturbed, True), (Putting, True), (Plain, False)])
def test_a_model_whose_calls_make_variables_is_known(
    build: Callable[[], nnx.Module], makes: bool
) -> None:
    model = build()
    assert nnm.makes_state(model) is makes
    if makes:
        x = jnp.ones((1, 2))
        nnm.lazy_init(model, x)
        assert [leaf.shape for leaf in jax.tree.leaves(nnx.state(model))] == [(1, 2)]


class Parts(linen.Module):
    parts: Any

    def __call__(self, x: Any) -> Any:
        for part in jax.tree.leaves(self.parts, is_leaf=lambda one: isinstance(one, linen.Module)):
            x = part(x)
        return x


@pytest.mark.parametrize(
    "arrange",
    [
        lambda a, b: {"foo": a, "bar": a, "baz": b},
        lambda a, b: [b] * 2 + [a] * 9,
        lambda a, b: {"x": [b, a], "b": {"y": a}},
        lambda a, b: (a, {"k": b, "a": b}),
    ],
)
def test_a_submodule_in_several_places_has_the_name_that_linen_gives_it(arrange: Any) -> None:
    theirs = Parts(arrange(linen.Dense(3), linen.Dense(3)))
    expected = theirs.init(jax.random.key(0), jnp.ones((1, 3)))["params"]
    owner = Holder()
    nnm.set_submodules(owner, "parts", arrange(linear(), linear()))
    assert sorted(nnx.state(owner)) == sorted(expected)


def test_an_unbound_layer_computes_with_the_parameters_of_each_call() -> None:
    head = nnm.Unbound(nnm.factory.Dense, 3, use_bias=False)
    kernel = jnp.arange(6.0).reshape(2, 3)
    x = jnp.ones((4, 2))
    np.testing.assert_array_equal(head.apply({"params": {"kernel": kernel}}, x), x @ kernel)
    assert head == nnm.Unbound(nnm.factory.Dense, 3, use_bias=False) != nnm.Unbound(len, 3)
    assert hash(head) == hash(nnm.Unbound(nnm.factory.Dense, 4))


def test_an_unbound_layer_takes_its_parameters_alone() -> None:
    head = nnm.Unbound(nnm.factory.Dense, 3)
    x = jnp.ones((4, 2))
    with pytest.raises(ValueError, match="collection 'params' alone, found"):
        head.apply({"params": {}, "batch_stats": {}}, x)
    with pytest.raises(ValueError, match=r"expected parameters \['bias', 'kernel'\]"):
        head.apply({"params": {"kernel": jnp.ones((2, 3))}}, x)
