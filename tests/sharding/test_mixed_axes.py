"""Meshes with Auto and Explicit axes: each axis is served as its type asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from nnx_migrate.sharding import (
    constrain,
    construct_named_sharding,
    create_sharded,
    linen_sharding,
    reshard_like,
)
from tests.sharding.meshes import AUTO, EXPLICIT, mesh

P = PartitionSpec
X = np.arange(128, dtype=np.float32).reshape(8, 16)
RULES = (
    ("batch", "data"),
    ("embed", "tensor"),
    ("both", ("data", "tensor")),
    ("mirrored", ("tensor", "data")),
)
MIXED = [(EXPLICIT, AUTO), (AUTO, EXPLICIT)]
NAMES = [
    (("batch", "embed"), P("data", "tensor")),
    (("embed", "batch"), P("tensor", "data")),
    (("batch", None), P("data")),
    ((None, "embed"), P(None, "tensor")),
    ((None, None), P()),
]


def mixed(kinds: Any) -> Mesh:
    return Mesh(mesh(data=4, tensor=2).devices, ("data", "tensor"), axis_types=kinds)


def away(devices: Mesh) -> jax.Array:
    """``X`` sharded over both axes in a way that no test asks for."""
    return jax.device_put(X, NamedSharding(devices, P(None, ("tensor", "data"))))


def as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@pytest.mark.parametrize("kinds", MIXED)
@pytest.mark.parametrize(("names", "expected"), NAMES)
@pytest.mark.parametrize("run", [jax.jit, as_it_is])
def test_every_axis_is_served(kinds: Any, names: Any, expected: Any, run: Any) -> None:
    devices = mixed(kinds)
    with jax.set_mesh(devices):
        y = run(lambda x: constrain(x * 2, names, RULES))(away(devices))
    np.testing.assert_array_equal(y, 2 * X)
    assert y.sharding.is_equivalent_to(NamedSharding(devices, expected), 2)


@pytest.mark.parametrize("kinds", MIXED)
def test_a_constraint_on_a_mesh_of_both_kinds_of_axes(kinds: Any) -> None:
    """Linen's (which is also what NNX code calls) and jax's own take Auto axes only."""
    names, spec = ("batch", "embed"), P("data", "tensor")
    with jax.set_mesh(mixed(kinds)), nnx.logical_axis_rules(RULES):
        for refused in (
            lambda x: linen.with_logical_constraint(x, names),
            lambda x: jax.lax.with_sharding_constraint(x, spec),
        ):
            with pytest.raises(ValueError, match="can only refer to Auto axes"):
                jax.jit(refused)(X)
        y = jax.jit(lambda x: constrain(x, names))(X)
    assert y.sharding.is_equivalent_to(NamedSharding(mixed(kinds), spec), 2)


@pytest.mark.parametrize("kinds", MIXED)
def test_the_type_says_the_explicit_axes_only(kinds: Any) -> None:
    explicit = "data" if kinds[0] is EXPLICIT else "tensor"
    with jax.set_mesh(mixed(kinds)):
        traced = jax.make_jaxpr(lambda x: constrain(x, ("batch", "embed"), RULES))(X)
    assert traced.out_avals[0].sharding.spec == P(
        *(axis if axis == explicit else None for axis in ("data", "tensor"))
    )


@pytest.mark.parametrize("kinds", MIXED)
@pytest.mark.parametrize("run", [jax.jit, as_it_is])
def test_gradients_and_vmap_go_through(kinds: Any, run: Any) -> None:
    devices = mixed(kinds)

    def loss(x: jax.Array) -> jax.Array:
        return jnp.sum(constrain(x, ("batch", "embed"), RULES) ** 2)

    with jax.set_mesh(devices):
        np.testing.assert_array_equal(run(jax.grad(loss))(away(devices)), 2 * X)
        y = run(jax.vmap(lambda x: constrain(x, ("batch", "embed"), RULES)))(
            jnp.ones((3, *X.shape))
        )
    assert y.sharding.is_equivalent_to(NamedSharding(devices, P(None, "data", "tensor")), 3)


@pytest.mark.parametrize(("kinds", "served"), [(MIXED[0], "both"), (MIXED[1], "mirrored")])
@pytest.mark.parametrize("run", [jax.jit, as_it_is])
def test_one_dimension_may_have_both_with_explicit_axes_first(
    kinds: Any, served: str, run: Any
) -> None:
    devices = mixed(kinds)
    with jax.set_mesh(devices):
        y = run(lambda x: constrain(x, (served,), RULES))(away(devices))
    assert y.sharding.is_equivalent_to(NamedSharding(devices, P(dict(RULES)[served])), 2)


@pytest.mark.parametrize(("kinds", "refused"), [(MIXED[0], "mirrored"), (MIXED[1], "both")])
def test_auto_axes_first_are_refused_in_a_trace_and_moved_outside(kinds: Any, refused: str) -> None:
    """Types say the outermost split, so nothing can be told of an Auto axis around it."""
    devices = mixed(kinds)
    with jax.set_mesh(devices):
        with pytest.raises(ValueError, match=r"Explicit axes before Auto axes .* in dimension 0"):
            jax.jit(lambda x: constrain(x, (refused,), RULES))(away(devices))
        y = constrain(away(devices), (refused,), RULES)
    assert y.sharding.is_equivalent_to(NamedSharding(devices, P(dict(RULES)[refused])), 2)


@pytest.mark.parametrize("kinds", MIXED)
def test_unconstrained_dimensions_are_refused(kinds: Any) -> None:
    with (
        jax.set_mesh(mixed(kinds)),
        pytest.raises(ValueError, match="nobody chooses what is UNCONSTRAINED there"),
    ):
        jax.jit(lambda x: constrain(x, ("batch", P.UNCONSTRAINED), RULES))(X)


@pytest.mark.parametrize("kinds", MIXED)
@pytest.mark.parametrize(
    "spec", [P("data", "tensor"), P("tensor"), P(None, ("tensor", "data")), P()]
)
def test_the_sharding_it_came_in_with_comes_back(kinds: Any, spec: PartitionSpec) -> None:
    devices = mixed(kinds)
    x = jax.device_put(X, NamedSharding(devices, spec))
    with jax.set_mesh(devices):
        back = jax.jit(lambda x: reshard_like(constrain(x * 2, ("batch", "embed"), RULES), x))(x)
    np.testing.assert_array_equal(back, 2 * X)
    assert back.sharding.is_equivalent_to(x.sharding, 2)


@pytest.mark.parametrize("kinds", MIXED)
def test_models_are_created_in_shards(kinds: Any) -> None:
    devices = mixed(kinds)

    def build() -> nnx.Linear:
        names = {"out_sharding": ("batch", "embed")}
        return nnx.Linear(8, 16, kernel_metadata=names, use_bias=False, rngs=nnx.Rngs(0))

    with linen_sharding(RULES, devices):
        built = build()
    for model in (create_sharded(build, devices, RULES), built):
        state = nnx.state(model)
        expected = construct_named_sharding(state, devices, RULES)["kernel"].get_raw_value()
        assert expected.spec == P("data", "tensor")
        assert state["kernel"].get_raw_value().sharding.is_equivalent_to(expected, 2)
