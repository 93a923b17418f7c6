"""R8, R9: logical axis names, on parameters and on activations."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from flax import linen, nnx

from nnx_migrate.sharding import construct_named_sharding, create_sharded, load_axis_rules
from tests.rewrite.running import migrated, module_of
from tests.sharding.meshes import AUTO, EXPLICIT, mesh

X = np.ones((8, 4, 8), np.float32)
SOURCE = """\
import flax.linen as nn


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = nn.initializers.lecun_normal()
        x = nn.with_logical_constraint(x, ("batch", "length", "act"))
        x = nn.Dense(16, kernel_init=nn.with_logical_partitioning(init, ("embed", "mlp")))(x)
        x = nn.with_logical_constraint(x, ("batch", "length", "act"))
        return nn.Dense(8, kernel_init=nn.with_logical_partitioning(init, ("mlp", "norm")))(x)
"""
# Two rules for a name, a conflict, a tuple that conflicts in part, a name without a rule.
RULES = (
    ("mlp", "fsdp"),
    ("embed", ("fsdp", "tensor")),
    ("embed", "tensor"),
    ("embed", None),
    ("batch", ("data", "fsdp")),
)


@pytest.fixture(scope="module")
def sides() -> Any:
    with module_of("names_linen", SOURCE) as old, module_of("names_nnx", migrated(SOURCE)) as new:
        yield old, new


def test_r8_parameters_resolve_as_linen_where_stock_nnx_crashes_or_differs(sides: Any) -> None:
    old, new = sides
    devices = mesh(AUTO, data=2, fsdp=2, tensor=2)
    boxed = jax.eval_shape(old.Model().init, jax.random.key(0), X)
    specs = linen.logical_to_mesh(linen.get_partition_spec(boxed), RULES)["params"]
    model = create_sharded(lambda: new.Model(in_features=8, rngs=nnx.Rngs(0)), devices, RULES)
    found = construct_named_sharding(nnx.state(model, nnx.Param), devices, RULES)
    for layer, expected in (("Dense_0", jax.P("tensor", "fsdp")), ("Dense_1", jax.P("fsdp", None))):
        assert found[layer]["kernel"].get_value().spec == specs[layer]["kernel"] == expected
        assert getattr(model, layer).kernel[...].sharding.spec == expected


@pytest.mark.filterwarnings("ignore:'sharding.*deprecated:DeprecationWarning")
@pytest.mark.parametrize("key", ["out_sharding", "sharding_names", "sharding", "logical_axes"])
def test_r8_names_are_read_under_every_key_they_had(key: str) -> None:
    devices = mesh(AUTO, data=2, fsdp=2, tensor=2)
    with nnx.use_eager_sharding(False):
        kernel = nnx.Param(np.ones((8, 8)))
    kernel.set_metadata(key, ("embed", "mlp"))
    state = {"kernel": kernel}
    found = construct_named_sharding(state, devices, RULES)
    assert found["kernel"].get_value().spec == jax.P("tensor", "fsdp")


def test_r9_a_constraint_runs_under_explicit_axes_of_size_one_where_linens_asserts(
    sides: Any,
) -> None:
    old, new = sides
    devices = mesh(EXPLICIT, data=2, fsdp=1, tensor=1)
    x = jax.device_put(X, jax.NamedSharding(devices, jax.P("data")))
    variables = linen.unbox(old.Model().init(jax.random.key(0), X))
    model = create_sharded(lambda: new.Model(in_features=8, rngs=nnx.Rngs(0)), devices, RULES)
    graphdef, state = nnx.split(model)
    with jax.set_mesh(devices), nnx.logical_axis_rules(RULES):
        y = jax.jit(lambda s, x: nnx.merge(graphdef, s, copy=True)(x))(state, x)
        assert y.sharding.spec[0] == "data"
        with pytest.raises(AssertionError):
            jax.jit(old.Model().apply)(variables, x)


def test_r9_names_of_a_model_are_checked_against_the_rules() -> None:
    names = ["embed", "activation_length_no_exp"]
    findings = load_axis_rules("default", model_names=names).findings
    found = [one for one in findings if "activation_length_no_exp" in str(one)]
    assert found, findings
    assert not [one for one in findings if "'embed'" in str(one)]
