"""``scan_with_axes`` and ``vmap_with_axes``: paths, programs and names of stacks are Linen's."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx
from flax.linen import partitioning

from nnx_migrate import nn as nnm
from nnx_migrate.sharding import get_partition_spec
from tests.rewrite.running import compare, migrated, module_of, refused

HEADER = """\
import flax.linen as nn
import jax.numpy as jnp
from flax.linen import partitioning
from flax.linen.partitioning import param_with_axes, scan_with_axes


class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, _=None):
        init = nn.initializers.lecun_normal()
        kernel = param_with_axes("kernel", init, (x.shape[-1], self.width), axes=("embed", "mlp"))
        return nn.tanh(x @ kernel), None


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
"""
STACKS = """\
        stack = scan_with_axes(
            Layer, variable_axes={"params": 1}, split_rngs={"params": True},
            in_axes=nn.broadcast, length=3, axis_name="stack",
        )
        x, _ = stack(x.shape[-1])(x, None)
        x, _ = scan_with_axes(
            nn.remat(Layer), variable_axes={"params": 0}, split_rngs={"params": True},
            in_axes=nn.broadcast, length=2,
        )(x.shape[-1], name="layers")(x, None)
        heads = partitioning.vmap_with_axes(
            Layer, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None,
            axis_size=2, partitioning_axis_names={"params": "heads"},
        )
        return x, heads(4)(x, None)
"""
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)


def test_paths_and_programs_are_linens() -> None:
    report = compare(HEADER + STACKS, "Model()", {"in_features": 6}, (X,))
    assert report.verdict == "identical", report


def test_every_stack_names_its_axis_as_linens_does() -> None:
    with (
        module_of("old", HEADER + STACKS) as old,
        module_of("new", migrated(HEADER + STACKS)) as new,
    ):
        variables = jax.eval_shape(old.Model().init, jax.random.key(0), X)
        names = partitioning.get_axis_names(variables["params_axes"])
        state = nnx.state(new.Model(in_features=6, rngs=nnx.Rngs(0)), nnx.Param)
        found = {path: get_partition_spec(state[path]["kernel"]) for path in names}
    assert found == {path: names[path]["kernel"] for path in names}
    assert found == {
        "Map_variablesScanLayer_0": jax.P("embed", "stack", "mlp"),
        "layers": jax.P("layers", "embed", "mlp"),
        "Map_variablesVmapLayer_0": jax.P("heads", "embed", "mlp"),
    }


COLLECTIONS = (
    HEADER.partition("class Layer")[0]
    + """\
class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _=None):
        kernel = param_with_axes("kernel", nn.initializers.normal(1.0), (6, 6), axes=("a", "b"))
        mean = partitioning.variable_with_axes("stats", "mean", jnp.zeros, (6,), axes=("b",))
        mean.value += x.mean(0)
        return nn.tanh(x @ kernel), None


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        stack = scan_with_axes(
            Layer, variable_axes={"params": 1, "stats": 0}, split_rngs={"params": True},
            in_axes=nn.broadcast, length=3, axis_name="stack", axes_collections=("params", "stats"),
        )()
        x, _ = stack(x, None)
        x, _ = stack(x, None)
        heads = partitioning.vmap_with_axes(
            Layer, variable_axes={"stats": 1, "params": 0}, split_rngs={"params": True},
            in_axes=None, axis_size=2, partitioning_axis_names={"params": "n", "stats": "n"},
        )
        return x, heads()(x, None)
"""
)


def test_collections_beside_the_parameters_are_linens_in_lifts_called_twice() -> None:
    report = compare(COLLECTIONS, "Model()", {}, (X,), collections=("stats",))
    assert report.verdict == "identical", report
    with (
        module_of("old", COLLECTIONS) as old,
        module_of("new", migrated(COLLECTIONS)) as new,
    ):
        variables = jax.eval_shape(old.Model().init, jax.random.key(0), X)
        state = nnx.state(new.Model(rngs=nnx.Rngs(0)))
        for collection, name in (("params", "kernel"), ("stats", "mean")):
            names = partitioning.get_axis_names(variables[f"{collection}_axes"])
            assert len(names) == 2
            for path, its in names.items():
                assert get_partition_spec(state[path][name]) == its[name]
    assert names["Map_variablesMap_variablesScanLayer_0"]["mean"] == jax.P("stack", "b")


def test_a_seed_gives_linens_values_in_lifts_called_twice() -> None:
    with (
        module_of("old", COLLECTIONS) as old,
        module_of("new", migrated(COLLECTIONS)) as new,
    ):
        theirs = jax.jit(old.Model().init)(jax.random.key(3), X)["params"]
        make = jax.jit(lambda key: nnm.variables_of(nnm.build(new.Model, rngs=key)))
        assert jax.tree.all(jax.tree.map(np.array_equal, make(jax.random.key(3))["params"], theirs))


@pytest.mark.parametrize(
    ("lift", "reason"),
    [
        ("scan_with_axes(Layer, variable_broadcast='params', length=2)", "plainly stack and name"),
        (
            "scan_with_axes(Layer, variable_axes={'params': 0}, axes_collections=('cache',), length=2)",
            "plainly stack and name the param",
        ),
        (
            "scan_with_axes(Layer, variable_axes={'params': 0}, axes_collections=NAMES, length=2)",
            "plainly stack and name the param",
        ),
        (
            "scan_with_axes(Layer, variable_axes={'params': -1}, length=2)",
            "plainly stack and name the param",
        ),
        (
            "scan_with_axes(Layer, variable_axes={'params': 0, NAMES: 0}, length=2)",
            "plainly stack and name the param",
        ),
        (
            "partitioning.vmap_with_axes(Layer, variable_axes={'params': 0}, partitioning_axis_names={'params': 'a', 's': 'b'})",
            "without one name",
        ),
        ("scan_with_axes(Layer, variable_axes={'params': 0})", "without length="),
        (
            "partitioning.vmap_with_axes(Layer, variable_axes={'params': 0}, axis_size=2)",
            "without one name",
        ),
        (
            "scan_with_axes(lambda m, x, s: m(x, s), variable_axes={'params': 0}, length=2)",
            "scan_with_axes of something else than a module class",
        ),
    ],
    ids=[
        *(
            "shared",
            "other collections",
            "hidden collections",
            "from the end",
            "a hidden key",
            "two names",
        ),
        *("no length", "no names", "a function"),
    ],
)
def test_refused(lift: str, reason: str) -> None:
    source = HEADER + f"        lifted = {lift}\n        return lifted(6)(x, None)\n"
    assert reason in refused(source)
