"""R3, R4, R6, R7: stacks of layers, what their loops return, random streams, closures."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from jax.extend.core import jaxprs_in_params

from nnx_migrate.sharding import construct_named_sharding, get_partition_spec
from tests.rewrite.running import migrated, module_of
from tests.sharding.meshes import AUTO, mesh

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Layer(nn.Module):
    width: int
    train: bool = False

    @nn.compact
    def __call__(self, x, _):
        names = nn.with_logical_partitioning(nn.initializers.lecun_normal(), ("embed", "mlp"))
        h = nn.Dense(self.width, kernel_init=names)(x)
        h = nn.Dropout(0.5)(h, deterministic=not self.train)
        seen = self.variable("batch_stats", "seen", lambda: jnp.zeros(()))
        if not self.is_initializing():
            seen.value = seen.value + 1
        return x + nn.Dense(x.shape[-1])(h), None


class Model(nn.Module):
    depth: int
    train: bool = False

    def setup(self):
        layer = nn.remat(Layer)
        self.dense_layers = nn.scan(
            layer,
            variable_axes={"params": 1, "batch_stats": 0},
            split_rngs={"params": True, "dropout": True},
            length=self.depth,
            metadata_params={nn.PARTITION_NAME: "dense_layers"},
        )(8, self.train)
        self.moe_layers = nn.scan(
            layer,
            variable_axes={"params": 0, "batch_stats": 0},
            split_rngs={"params": True, "dropout": True},
            length=self.depth,
            metadata_params={nn.PARTITION_NAME: "moe_layers"},
        )(4, self.train)

    def __call__(self, x):
        x, _ = self.dense_layers(x, None)
        return self.moe_layers(x, None)[0]
"""
RULES = (("embed", "fsdp"), ("mlp", "tensor"))
PATHS = ("dense_layers", "moe_layers")


@pytest.fixture(scope="module")
def sides() -> Any:
    with module_of("stacks_linen", SOURCE) as old, module_of("stacks_nnx", migrated(SOURCE)) as new:
        yield old, new


def model_of(new: Any, train: bool = False) -> Any:
    return new.Model(3, train, in_features=6, rngs=nnx.Rngs(0, dropout=1))


def names(model: Any) -> dict[str, Any]:
    state = nnx.state(model, nnx.Param)
    return {path: get_partition_spec(state[path]["Dense_0"]["kernel"]) for path in PATHS}


def test_r3_each_stack_records_its_own_axis_and_name_and_a_step_changes_neither(sides: Any) -> None:
    old, new = sides
    boxed = jax.eval_shape(old.Model(3).init, jax.random.key(0), X)["params"]
    expected = {path: linen.get_partition_spec(boxed)[path]["Dense_0"]["kernel"] for path in PATHS}
    assert expected == {
        "dense_layers": jax.P("embed", "dense_layers", "mlp"),
        "moe_layers": jax.P("moe_layers", "embed", "mlp"),
    }
    model = model_of(new, train=True)
    assert names(model) == expected
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    devices = mesh(AUTO, fsdp=2, tensor=2)

    def specs() -> dict[str, Any]:
        found = construct_named_sharding(nnx.state(model, nnx.Param), devices, RULES)
        flat = nnx.to_flat_state(found)
        return {"/".join(map(str, path)): one.get_value().spec for path, one in flat}

    before = specs()
    optimizer.update(model, nnx.grad(lambda model: jnp.mean(model(X) ** 2))(model))
    assert names(model) == expected
    assert specs() == before
    assert before["dense_layers/Dense_0/kernel"] == jax.P("fsdp", None, "tensor")


def scans(jaxpr: Any) -> list[Any]:
    """Every scan in a jaxpr, those inside others too."""
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            found.append(equation)
        for inner in jaxprs_in_params(equation.params):
            found += scans(getattr(inner, "jaxpr", inner))
    return found


def test_r4_a_scan_returns_only_what_its_body_changed(sides: Any) -> None:
    _, new = sides
    graphdef, state = nnx.split(model_of(new))

    def forward(state: Any, x: Any) -> Any:
        model = nnx.merge(graphdef, state, copy=True)
        return model(x), nnx.state(model, nnx.BatchStat)

    loops = scans(jax.make_jaxpr(forward)(state, X).jaxpr)
    assert len(loops) == 2
    for loop in loops:
        results = [one.aval.shape for one in loop.outvars]
        assert results == [(2, 6), (3,)]  # the carry and `seen`, no kernel of shape (3, ...)


def masks(model: Any) -> Any:
    """Which of the hidden units of every layer were dropped, told from the gradients."""
    grads = nnx.grad(lambda model: jnp.sum(model(X)))(model)
    kernels = [grads[path]["Dense_1"]["kernel"][...] for path in PATHS]
    return [np.asarray(one == 0) for one in kernels]


def test_r6_layers_and_steps_draw_different_masks(sides: Any) -> None:
    _, new = sides
    model = model_of(new, train=True)
    first, second = masks(model), masks(model)
    for one, other in zip(first, second, strict=True):
        assert one.any()
        assert (one != other).any()  # the stream advanced between the two steps
    dense = np.moveaxis(first[0], 1, 0)
    assert any((dense[0] != dense[i]).any() for i in (1, 2))  # no two layers share a key


def test_r6_the_streams_state_must_be_returned_from_a_pure_step(sides: Any) -> None:
    _, new = sides
    graphdef, state = nnx.split(model_of(new, train=True))

    @jax.jit
    def step(state: Any) -> Any:
        model = nnx.merge(graphdef, state, copy=True)
        return model(X), nnx.state(model)

    one, after = step(state)
    np.testing.assert_array_equal(step(state)[0], one)
    assert (np.asarray(step(after)[0]) != np.asarray(one)).any()


def test_r7_gradients_inside_a_jitted_step_leak_no_tracer_of_a_closed_over_module(
    sides: Any,
) -> None:
    _, new = sides
    model = model_of(new, train=True)
    optimizer = nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model: Any, optimizer: Any) -> Any:
        loss, grads = nnx.value_and_grad(lambda model: jnp.mean(model(X) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    losses = [float(step(model, optimizer)) for _ in range(3)]
    assert len(set(losses)) == 3
    assert not any(
        isinstance(one.get_value(), jax.core.Tracer)
        for _, one in nnx.to_flat_state(nnx.state(model))
    )
    np.testing.assert_array_equal(model.dense_layers.seen[...], np.full(3, 3.0))
