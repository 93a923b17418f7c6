"""State by collection and name, as Linen's modules have it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from nnx_migrate import nn as nnm

X = jnp.arange(6.0).reshape(2, 3)


class Perturbed(nnx.Module):
    def __call__(self, x: jax.Array) -> jax.Array:
        return 3 * nnm.perturb(self, "x", x)


class Asking(nnx.Module):
    """Answers what it is asked."""

    def __init__(self) -> None:
        self.count = nnm.variable("state", jnp.zeros(()))

    def __call__(self, collection: str) -> bool:
        return nnm.is_mutable_collection(self, collection)


@pytest.mark.parametrize(
    ("collection", "mutable"),
    [("state", True), ("other", True), ("params", False), ("intermediates", False)],
)
def test_a_plain_call_may_change_state_but_no_parameters(collection: str, mutable: bool) -> None:
    assert Asking()(collection) is mutable


@pytest.mark.parametrize(
    ("given", "collection", "mutable"),
    [
        (False, "state", False),
        (["state"], "state", True),
        (["state"], "other", False),
        (True, "params", True),
    ],
)
def test_apply_says_what_is_mutable(given: Any, collection: str, mutable: bool) -> None:
    found = nnm.apply(Asking(), {"state": {"count": 0.0}}, collection, mutable=given)
    assert (found if given is False else found[0]) is mutable


def test_captured_collections_are_mutable() -> None:
    answer, _ = nnx.capture(Asking(), nnx.Intermediate)("intermediates")
    assert answer is True


def test_only_the_call_of_init_is_one() -> None:
    class Model(nnx.Module):
        def __call__(self) -> jax.Array:
            start = 1.0 if nnm.is_initializing() else 0.0
            made = nnm.lazy_variable(self, "state", "start", lambda: jnp.asarray(start))
            return made[...]

    class Holder(nnx.Module):
        def __init__(self) -> None:
            self.model = Model()

        def __call__(self, _: Any) -> jax.Array:
            return self.model()

    assert nnm.variables_of(Holder(), 0)["state"]["model"]["start"] == 1.0
    assert Holder()(0) == 0.0


def test_perturbations_are_made_by_init_alone() -> None:
    made = nnm.variables_of(Perturbed(), X)
    np.testing.assert_array_equal(made["perturbations"]["x"], jnp.zeros_like(X))
    model = Perturbed()
    np.testing.assert_array_equal(model(X), 3 * X)
    assert not nnm.variables_of(model)


def test_a_given_perturbation_is_added() -> None:
    given = {"perturbations": {"x": jnp.ones_like(X)}}
    np.testing.assert_array_equal(nnm.apply(Perturbed(), given, X), 3 * (X + 1))


def test_a_collection_that_lacks_the_perturbation_is_an_error() -> None:
    with pytest.raises(ValueError, match="without the perturbation 'x'"):
        nnm.apply(Perturbed(), {"perturbations": {"y": X}}, X)


def test_perturbations_are_nnxs_own_under_capture() -> None:
    model = Perturbed()
    _, start = nnx.capture(model, nnx.Perturbation)(X)

    def loss(model: Perturbed, start: Any) -> jax.Array:
        return jnp.sum(nnx.capture(model, init=start)(X))

    grads = nnx.grad(loss, argnums=1)(model, start)
    np.testing.assert_array_equal(grads["x"][...], jnp.full_like(X, 3))


def test_put_makes_and_replaces() -> None:
    model = Asking()
    nnm.put_variable(model, "state", "count", jnp.ones(()))
    nnm.put_variable(model, "cache", "last", X)
    assert nnm.get_variable(model, "state", "count") == 1
    assert type(model.last) is nnx.Cache  # type: ignore[attr-defined]


def test_put_over_something_else_is_an_error() -> None:
    with pytest.raises(ValueError, match="one attribute of a name"):
        nnm.put_variable(Asking(), "cache", "count", X)


def test_get_gives_the_default_for_what_is_not_there() -> None:
    model = Asking()
    assert nnm.get_variable(model, "cache", "count") is None
    assert nnm.get_variable(model, "state", "other", 3) == 3


def test_a_variable_with_axis_names_comes_in_a_box() -> None:
    model = Asking()
    model.kernel = nnx.Param(jnp.ones(3), logical_axes=("a",))
    box = nnm.get_variable(model, "params", "kernel")
    assert box.names == ("a",)
    nnm.put_variable(model, "params", "kernel", box.replace_boxed(jnp.zeros(3)))
    np.testing.assert_array_equal(model.kernel[...], jnp.zeros(3))


class Table(nnx.Module):
    """A parameter that is a dict, as lazy modules of explicit code hold theirs."""

    def __init__(self) -> None:
        self.layer = nnx.Param({"bias": jnp.ones(2), "inner": {"scale": jnp.ones(3)}})

    def __call__(self) -> jax.Array:
        return self.layer["bias"].sum() + self.layer["inner"]["scale"].sum()


def test_a_parameter_that_is_a_dict_is_one_after_updates() -> None:
    model = Table()
    optimizer = nnx.Optimizer(model, optax.sgd(0.5), wrt=nnx.Param)
    optimizer.update(model, nnx.grad(lambda one: one())(model))
    layer = nnm.variables_of(model)["params"]["layer"]
    assert (type(layer), type(layer["inner"])) == (dict, dict)
    np.testing.assert_array_equal(layer["inner"]["scale"], [0.5, 0.5, 0.5])
