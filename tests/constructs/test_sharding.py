"""A class with Linen's sharding constructs is rewritten to one that shards the same."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate.constructs import sharding
from nnx_migrate.sharding import construct_named_sharding, create_sharded
from nnx_migrate.sharding.boxes import LOGICAL_AXES
from tests.constructs.convert import refusal, text
from tests.rewrite.projects import LINEN, one_line
from tests.rewrite.projects import explicit_source as rewrite_source
from tests.rewrite.running import migrated
from tests.sharding.meshes import AUTO, EXPLICIT, mesh

SOURCE = """\
import flax.linen as nn
from flax.linen import partitioning


class Mlp(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        names = ("batch", None, "mlp")
        init = nn.initializers.lecun_normal()
        wi = nn.with_logical_partitioning(init, ("embed", "mlp"))
        wo = nn.with_partitioning(init, ("expert", "fsdp"))
        x = nn.with_logical_constraint(x, ("batch", "length", "embed"))
        x = nn.relu(nn.Dense(self.width, kernel_init=wi)(x))
        x = partitioning.with_sharding_constraint(x, names)
        bias = self.param(
            "bias",
            nn.with_logical_partitioning(nn.initializers.zeros, ("mlp",), rules=(("mlp", None),)),
            (self.width,),
        )
        return nn.Dense(8, kernel_init=wo)(x + bias[None, None])
"""
RULES = (("batch", "data"), ("length", "fsdp"), ("embed", "fsdp"), ("mlp", "expert"))
X = np.arange(4 * 2 * 8, dtype=np.float32).reshape(4, 2, 8) / 50
NEW = """\
        names = ("batch", None, "mlp")
        x = nnms.with_logical_constraint(x, ("batch", "length", "embed"))
        x = nnx.relu(self.Dense_0(x))
        x = nnms.with_logical_constraint(x, names)
"""


@pytest.fixture(scope="module")
def rewritten() -> tuple[str, Any, Any]:
    """New text, Linen class, NNX class."""
    result = rewrite_source(SOURCE)
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    exec(SOURCE, old)  # noqa: S102
    exec(result.code, new)  # noqa: S102
    return result.code, old["Mlp"], new["Mlp"]


def test_constraints_keep_their_place_and_arguments(rewritten: Any) -> None:
    code, _, _ = rewritten
    assert "from nnx_migrate import sharding as nnms" in code
    assert "flax.linen" not in code
    for line in NEW.splitlines():
        assert line in code


def test_parameters_get_linens_specs_and_programs_linens_constraints(rewritten: Any) -> None:
    _, old, new = rewritten
    devices = mesh(AUTO, data=2, fsdp=2, expert=2)
    boxed = jax.eval_shape(old(width=6).init, jax.random.key(0), X)
    specs = linen.logical_to_mesh(linen.get_partition_spec(boxed), RULES)["params"]
    model = create_sharded(lambda: new(6, in_features=8, rngs=nnx.Rngs(0)), devices, RULES)
    state = nnx.state(model, nnx.Param)
    found = construct_named_sharding(state, devices, RULES)
    for layer in ("Dense_0", "Dense_1"):
        sharding = found[layer]["kernel"].get_raw_value()
        if layer == "Dense_0":
            assert sharding.spec == specs[layer]["kernel"]
        else:  # mesh axes, which Linen's own resolution by rules would not leave alone
            assert sharding.spec == linen.get_partition_spec(boxed)["params"][layer]["kernel"]
        assert state[layer]["kernel"].get_raw_value().sharding == sharding
    assert found["bias"].get_raw_value().spec == jax.P(None)  # a rule of the parameter's own

    def constraints(f: Any, *args: Any) -> list[str]:
        with jax.set_mesh(devices), linen.logical_axis_rules(RULES):
            lines = jax.jit(f).lower(*args).as_text().splitlines()
        return [line.split("<@mesh")[1] for line in lines if "sharding_constraint" in line]

    plain = linen.unbox(jax.jit(old(width=6).init)(jax.random.key(0), X))
    graphdef, whole = nnx.split(new(6, in_features=8, rngs=nnx.Rngs(0)))
    theirs = constraints(lambda v, x: old(width=6).apply(v, x), plain, X)
    ours = constraints(lambda s, x: nnx.merge(graphdef, s, copy=True)(x), whole, X)
    assert len(ours) == 2
    assert ours == theirs


def test_without_a_mesh_or_rules_the_outputs_are_linens(rewritten: Any) -> None:
    _, old, new = rewritten
    variables = linen.unbox(jax.jit(old(width=6).init)(jax.random.key(0), X))
    model = new(6, in_features=8, rngs=nnx.Rngs(0))
    nnx.update(model, jax.tree.map(jnp.asarray, variables["params"]))
    graphdef, state = nnx.split(model)
    with jax.set_mesh(mesh(data=2)):
        ours = jax.jit(lambda s, x: nnx.merge(graphdef, s, copy=True)(x))(state, X)
        theirs = jax.jit(old(width=6).apply)(variables, X)
    np.testing.assert_array_equal(ours, theirs)


def test_it_runs_under_explicit_axes_where_linens_constraint_asserts(rewritten: Any) -> None:
    code, _, _ = rewritten
    scope: dict[str, Any] = {}
    exec(code.replace('wo = nnm.with_partitioning(init, ("expert", "fsdp"))', "wo = init"), scope)  # noqa: S102
    devices = mesh(EXPLICIT, data=8, fsdp=1)
    model = create_sharded(lambda: scope["Mlp"](6, in_features=8, rngs=nnx.Rngs(0)), devices, RULES)
    graphdef, state = nnx.split(model)
    x = jax.device_put(np.ones((8, 2, 8), np.float32), jax.NamedSharding(devices, jax.P("data")))
    with jax.set_mesh(devices), nnx.logical_axis_rules(RULES):
        y = jax.jit(lambda s, x: nnx.merge(graphdef, s, copy=True)(x))(state, x)
    assert y.sharding.spec[0] == "data"


def test_partitioning_by_mesh_axes_is_not_changed_by_rules() -> None:
    init = nnm.with_partitioning(nnx.initializers.ones, ("expert", ("data", "fsdp"), None))
    state = {"x": nnx.Param(init(jax.random.key(0), (2, 4, 3)))}
    devices = mesh(data=2, fsdp=2, expert=2)
    found = construct_named_sharding(state, devices, (("expert", "data"), ("data", "expert")))
    assert found["x"].get_raw_value().spec == jax.P("expert", ("data", "fsdp"), None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.PARTITION_NAME", "nnx.PARTITION_NAME"),
        (
            "nn.with_logical_partitioning(nn.zeros, ('embed',))",
            "nnm.with_logical_partitioning(nnx.initializers.zeros, ('embed',))",
        ),
        (
            "nn.with_partitioning(nn.ones, ('data', None), mesh=mesh)",
            "nnm.with_partitioning(nnx.initializers.ones, ('data', None), mesh=mesh)",
        ),
        (
            "nn.with_logical_constraint(x, ('batch', 'embed'), rules=rules, mesh=mesh)",
            "nnms.with_logical_constraint(x, ('batch', 'embed'), rules=rules, mesh=mesh)",
        ),
        (
            "partitioning.with_sharding_constraint(x, ('batch',))",
            "nnms.with_logical_constraint(x, ('batch',))",
        ),
        (
            "nn.with_logical_constraint(x, n, fallback=nn.spmd.RulesFallback.RAISE_ERROR)",
            "nnms.with_logical_constraint(x, n, fallback=nnms.RulesFallback.RAISE_ERROR)",
        ),
        ("nn.logical_to_mesh_axes(names)", "nnms.logical_to_mesh_axes(names)"),
        ("nn.spmd.logical_to_mesh(tree, rules)", "nnms.logical_to_mesh(tree, rules)"),
        ("partitioning.logical_to_mesh(tree)", "nnms.logical_to_mesh(tree)"),
        ("nn.logical_to_mesh_sharding(t, mesh)", "nnms.logical_to_mesh_sharding(t, mesh)"),
        ("nn.unbox(params)", "nnms.unbox(params)"),
        ("nn.meta.unbox(params)", "nnms.unbox(params)"),
        ("nn.meta.replace_boxed(box, x)", "nnms.replace_boxed(box, x)"),
        ("nn.get_partition_spec(variables)", "nnms.get_partition_spec(variables)"),
        ("nn.get_sharding(variables, mesh)", "nnms.get_sharding(variables, mesh)"),
        ("nn.LogicallyPartitioned(x, names)", "nnms.LogicallyPartitioned(x, names)"),
        ("nn.spmd.LogicallyPartitioned(x, n)", "nnms.LogicallyPartitioned(x, n)"),
        ("isinstance(x, nn.Partitioned)", "isinstance(x, nnms.Partitioned)"),
        ("isinstance(x, nn.meta.AxisMetadata)", "isinstance(x, nnms.AxisMetadata)"),
        ("{nn.meta.PARTITION_NAME: 'layers'}", "{nnx.PARTITION_NAME: 'layers'}"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


def test_the_metadata_has_the_name_that_the_shim_reads() -> None:
    assert sharding.LOGICAL_AXES == LOGICAL_AXES


LAYER = (
    LINEN
    + """
names, r = ("a", "b"), ()


def wrapped(init):
    return init


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = nn.initializers.normal()
        return {body}
"""
)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (
            "nn.Dense(8, kernel_init=nn.with_logical_partitioning(init, ('embed', 'mlp')))(x)",
            "kernel_init=nnx.with_metadata(init, logical_axes=('embed', 'mlp'))",
        ),
        (
            "self.param('w', nn.with_logical_partitioning(init, ('a', None)), (2, 3))",
            "nnx.with_metadata(init, logical_axes=('a', None))(rngs.params(), (2, 3))",
        ),
        (
            "self.param('w', nn.with_logical_partitioning(init, ('a', None)), shape=(2, 3))",
            "nnm.with_logical_partitioning(init, ('a', None))(rngs.params(), shape=(2, 3))",
        ),
        (
            "nn.Dense(8, kernel_init=nn.with_logical_partitioning(init, names))(x)",
            "kernel_init=nnm.with_logical_partitioning(init, names)",
        ),
        (
            "nn.Dense(8, kernel_init=nn.with_logical_partitioning(init, ('a', 'b'), rules=r))(x)",
            "kernel_init=nnm.with_logical_partitioning(init, ('a', 'b'), rules=r)",
        ),
        (
            "nn.Dense(8, kernel_init=wrapped(nn.with_logical_partitioning(init, ('a', 'b'))))(x)",
            "wrapped(nnm.with_logical_partitioning(init, ('a', 'b')))",
        ),
    ],
)
def test_names_are_plain_metadata_where_only_a_variable_is_made(body: str, after: str) -> None:
    assert after in one_line(migrated(LAYER.format(body=body)))


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("partitioning.ScanOut(0)", "only makes"),
        ("partitioning.AxisMetadata(names)", "a box of axis names in a collection"),
        ("nn.meta", "module flax.core.meta"),
        ("partitioning.get_axis_names(variables)", "axis names of variables"),
        ("partitioning.param_with_axes('k', i)", "param_with_axes"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
