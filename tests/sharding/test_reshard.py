"""An array gets back the sharding it came in with."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

from nnx_migrate.sharding import reshard_like
from nnx_migrate.sharding.placing import apply_spec
from tests.sharding.meshes import AUTO, EXPLICIT, abstract_mesh, mesh

P = PartitionSpec
X = np.arange(64, dtype=np.float32).reshape(8, 8)
SPECS = [P("data"), P("model", "data"), P(None, "model"), P(), P(("data", "model"))]


def arrays(kind: AxisType, spec: PartitionSpec) -> tuple[Any, jax.Array]:
    devices = mesh(kind, data=4, model=2)
    return devices, jax.device_put(X, NamedSharding(devices, spec))


def moved(x: jax.Array, devices: Any) -> jax.Array:
    """Twice ``x``, sharded in a way of its own."""
    y: jax.Array = apply_spec(x * 2, devices, P(None, ("model", "data")))
    return y


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("traced", [True, False])
def test_the_sharding_it_came_in_with_comes_back(
    kind: AxisType, spec: PartitionSpec, traced: bool
) -> None:
    devices, x = arrays(kind, spec)

    def f(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        away = moved(x, devices)
        return reshard_like(away, x), away

    with jax.set_mesh(devices):
        back, away = (jax.jit(f) if traced else f)(x)
    np.testing.assert_array_equal(back, 2 * X)
    assert back.sharding.is_equivalent_to(x.sharding, 2)
    assert not away.sharding.is_equivalent_to(x.sharding, 2)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("traced", [True, False])
def test_a_sharding_or_an_array_with_values_will_do_as_reference(
    kind: AxisType, traced: bool
) -> None:
    devices, reference = arrays(kind, P("model", "data"))
    for given in (reference, reference.sharding):
        f = lambda x, given=given: reshard_like(x, given)
        with jax.set_mesh(devices):
            y = (jax.jit(f) if traced else f)(jnp.ones((8, 8, 3)))
        assert y.sharding.is_equivalent_to(reference.sharding, 3)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_arrays_with_values_are_resharded_in_a_trace(kind: AxisType) -> None:
    devices, reference = arrays(kind, P("model", "data"))
    with jax.set_mesh(devices):
        y = jax.jit(lambda: reshard_like(jnp.asarray(X), reference))()
        z = jax.jit(lambda x: reshard_like(jnp.asarray(X), x))(reference)
    assert y.sharding.is_equivalent_to(reference.sharding, 2)
    assert z.sharding.is_equivalent_to(reference.sharding, 2)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("traced", [True, False])
def test_the_memory_comes_back_too(kind: AxisType, traced: bool) -> None:
    devices = mesh(kind, data=4, model=2)
    host = NamedSharding(devices, P("model"), memory_kind="pinned_host")
    f = lambda x: reshard_like(x, host)
    with jax.set_mesh(devices):
        y = (jax.jit(f) if traced else f)(jnp.asarray(X))
    assert y.sharding.memory_kind == "pinned_host"
    assert y.sharding.is_equivalent_to(host, 2)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_keys_are_resharded_like_keys(kind: AxisType) -> None:
    devices = mesh(kind, data=4, model=2)
    keys = jax.random.split(jax.random.key(0), 8)
    sharded = jax.device_put(keys, NamedSharding(devices, P("data")))
    with jax.set_mesh(devices):
        back = jax.jit(reshard_like)(keys, sharded)
    assert back.sharding.is_equivalent_to(sharded.sharding, 1)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_gradients_loops_and_vmap_go_through(kind: AxisType) -> None:
    devices, x = arrays(kind, P("model", "data"))

    def loss(x: jax.Array) -> jax.Array:
        def step(y: jax.Array, _: None) -> tuple[jax.Array, None]:
            return reshard_like(moved(y, devices), y), None

        return jnp.sum(jax.lax.scan(step, x, None, length=2)[0] ** 2)

    with jax.set_mesh(devices):
        np.testing.assert_allclose(jax.jit(jax.grad(loss))(x), 32 * X)
        both = jax.jit(jax.vmap(lambda a: reshard_like(a * 2, a)))(x)
        one = jax.jit(jax.vmap(reshard_like, in_axes=(0, None)))(jnp.ones((3, 8, 8)), x)
    np.testing.assert_array_equal(both, 2 * X)
    np.testing.assert_array_equal(one, np.ones((3, 8, 8)))


def test_two_pairs_are_two_groups() -> None:
    """Arrays of equal shapes and different shardings each get their own back."""
    devices, a = arrays(AUTO, P("model", "data"))
    b = jax.device_put(X, NamedSharding(devices, P("data", "model")))

    @jax.jit
    def f(a: jax.Array, b: jax.Array) -> Any:
        return reshard_like(moved(a, devices), a), reshard_like(moved(b, devices), b)

    first, second = f(a, b)
    assert first.sharding.is_equivalent_to(a.sharding, 2)
    assert second.sharding.is_equivalent_to(b.sharding, 2)
    text = f.lower(a, b).as_text()
    assert text.count("sharding_group") == 4
    assert text == f.lower(a, b).as_text()


def test_one_device_and_no_mesh_will_do() -> None:
    y = jax.jit(lambda x: reshard_like(x * 2, x))(X)
    np.testing.assert_array_equal(y, 2 * X)
    assert y.sharding == jnp.ones(3).sharding


def test_what_cannot_be_given_is_refused() -> None:
    _, x = arrays(AUTO, P("model", "data"))
    with pytest.raises(ValueError, match=r"reference's shape \(8, 8\) under Auto axes"):
        jax.jit(lambda x: reshard_like(x[0], x))(x)
    with pytest.raises(ValueError, match=r"a key for a key, found \(8,\) \(key<fry> for float32\)"):
        jax.jit(lambda x: reshard_like(jax.random.split(jax.random.key(0), 8), x[0]))(x)
    with pytest.raises(ValueError, match="divisible by 2"):
        reshard_like(jnp.ones((3, 4)), x)
    with pytest.raises(ValueError, match="at most 1 entries"):
        reshard_like(jnp.ones(8), x)
    with pytest.raises(TypeError, match="a NamedSharding for a traced array"):
        jax.jit(lambda x: reshard_like(x, SingleDeviceSharding(jax.devices()[0])))(x)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_an_abstract_mesh_will_do(kind: AxisType) -> None:
    large = abstract_mesh(kind, data=256, model=2)
    sharding = NamedSharding(large, P("data"))
    given = jax.ShapeDtypeStruct((512, 512), jnp.float32, sharding=sharding)
    with jax.sharding.use_abstract_mesh(large):
        f = jax.jit(lambda x: reshard_like(moved(x, large), x))
        text = f.trace(given).lower(lowering_platforms=("cpu",)).as_text()
    mark = "sdy.sharding_group" if kind is AUTO else '[{"data"}, {}]'
    assert mark in text
