"""``param_with_axes`` of flax.linen.partitioning: parameters, names and constraints are Linen's."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from flax import linen, nnx
from flax.linen import partitioning

from nnx_migrate import nn as nnm
from nnx_migrate.sharding import construct_named_sharding, get_partition_spec
from tests.rewrite.projects import rewrite
from tests.rewrite.running import compare, migrated, module_of
from tests.sharding.meshes import AUTO, mesh

HEADER = """\
import flax.linen as nn
import jax.numpy as jnp
from flax.linen import partitioning as nn_partitioning
from flax.linen.partitioning import param_with_axes

KERNEL = ("embed", "mlp")


"""
SOURCE = (
    HEADER
    + """\
class Layer(nn.Module):
    width: int
    axes: tuple = ("mlp",)

    @nn.compact
    def __call__(self, x):
        kernel = param_with_axes(
            "kernel", nn.initializers.lecun_normal(), (x.shape[-1], self.width), axes=KERNEL
        )
        y = nn_partitioning.with_sharding_constraint(x @ kernel, ("batch", "mlp"))
        return y + nn_partitioning.param_with_axes(
            "bias", nn.initializers.normal(1.0), (self.width,), jnp.float32, axes=self.axes
        )[None]


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Layer(4)(nn.relu(Layer(8)(x)))
"""
)
X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
RULES = (("batch", "data"), ("embed", "data"), ("mlp", "tensor"))


def test_paths_values_and_programs_are_linens() -> None:
    assert compare(SOURCE, "Model()", {"in_features": 6}, (X,)).verdict == "identical"


def test_names_specs_and_constraints_are_linens_under_a_mesh() -> None:
    devices = mesh(AUTO, data=2, tensor=2)
    with module_of("old", SOURCE) as old, module_of("new", migrated(SOURCE)) as new:
        shapes = jax.eval_shape(old.Model().init, jax.random.key(0), X)
        names = partitioning.get_axis_names(shapes["params_axes"])
        model = new.Model(in_features=6, rngs=nnx.Rngs(0))
        graphdef, state = nnx.split(model)
        for layer in ("Layer_0", "Layer_1"):
            for name in ("kernel", "bias"):
                assert get_partition_spec(state[layer][name]) == names[layer][name]
        found = construct_named_sharding(state, devices, RULES)
        expected = linen.logical_to_mesh_sharding(names, devices, RULES)
        assert found["Layer_0"]["kernel"].get_value() == expected["Layer_0"]["kernel"]
        assert expected["Layer_0"]["kernel"].spec == jax.P("data", "tensor")
        values = nnm.variables_of(model)
        assert isinstance(values["params"]["Layer_0"]["kernel"], jax.Array)  # no box, as in Linen

        def constraints(function: Any, *args: Any) -> list[str]:
            with jax.set_mesh(devices), linen.logical_axis_rules(RULES):
                lines = jax.jit(function).lower(*args).as_text().splitlines()
            return [line.split("<@mesh")[1] for line in lines if "sharding_constraint" in line]

        theirs = constraints(old.Model().apply, values, X)
        ours = constraints(lambda s, x: nnx.merge(graphdef, s, copy=True)(x), state, X)
        assert ours == theirs
        assert len(ours) == 6


REFUSED = {
    "in setup": """\
class Model(nn.Module):
    def setup(self):
        self.kernel = param_with_axes("kernel", nn.initializers.ones, (6, 4), axes=KERNEL)

    def __call__(self, x):
        return x @ self.kernel
""",
    "of another module": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x @ param_with_axes("k", nn.initializers.ones, (6, 4), axes=KERNEL, module=self)
""",
    "in a function": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        make = lambda: param_with_axes("k", nn.initializers.ones, (6, 4), axes=KERNEL)
        return x @ make()
""",
    "without axes": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x @ param_with_axes("k", nn.initializers.ones, (6, 4))
""",
    "a variable": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        mean = nn_partitioning.variable_with_axes("stats", "mean", jnp.zeros, (6,), axes=("embed",))
        return x + mean.value[None]
""",
}


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
def test_refused(source: str) -> None:
    (found,) = rewrite({"m.py": HEADER + source}).classes
    assert found.outcome.value == "refused"
    assert "with_axes" in (found.reason or ""), found.reason
