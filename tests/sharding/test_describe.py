"""Which array is sharded how and why, and what was decided silently over a whole state."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from nnx_migrate.sharding import (
    AxesDropped,
    NameUnmatched,
    RuleLost,
    construct_named_sharding,
    describe_shardings,
    silent_losses,
)

P = PartitionSpec
MESH = AbstractMesh((2, 4, 1), ("x", "y", "one"), axis_types=(AxisType.Auto,) * 3)
RULES = (("mlp", "y"), ("embed", ("x", "y")), ("embed", ("x", "one")))


def param(names: Any, *shape: int, **metadata: Any) -> nnx.Param[Any]:
    with nnx.use_eager_sharding(False):
        return nnx.Param(
            jax.ShapeDtypeStruct(shape, jnp.float32),
            **({"out_sharding": names} if names else {}),
            **metadata,
        )


STATE = {
    "bias": param(None, 8),
    "norm": param(("norm",), 8),
    "wi": param(("embed", "mlp"), 8, 8),
    "wo": param(P("x"), 8, 8),
}


def test_each_array_has_its_names_specs_and_silent_decisions() -> None:
    bias, norm, wi, wo = describe_shardings(STATE, MESH, RULES)
    assert [one.path for one in (bias, norm, wi, wo)] == ["bias", "norm", "wi", "wo"]
    assert (bias.names, bias.spec, bias.silent) == (None, None, ())
    assert (norm.names, norm.spec) == (("norm",), P(None))
    assert norm.silent == (NameUnmatched("norm", 0, "norm"),)
    assert (wi.names, wi.spec, wi.shapes) == (("embed", "mlp"), P(("x", "one"), "y"), ((8, 8),))
    assert wi.shardings == (NamedSharding(MESH, P("x", "y")),)
    assert wi.silent == (
        RuleLost("wi", 0, "embed", 1, ("x", "y"), (("y", "mlp"),), ("x", "one")),
        AxesDropped("wi", 0, "embed", ("one",), ()),
    )
    assert (wo.names, wo.spec, wo.silent) == (P("x"), P("x"), ())


def test_the_shardings_are_those_that_are_constructed() -> None:
    described = describe_shardings(STATE, MESH, RULES)
    constructed = jax.tree.leaves(construct_named_sharding(STATE, MESH, RULES))
    assert [one for row in described for one in row.shardings] == constructed


def test_the_losses_of_a_state_leave_out_axes_the_mesh_cannot_use() -> None:
    found = silent_losses(describe_shardings(STATE, MESH, RULES))
    assert [(type(one), one.array) for one in found] == [(NameUnmatched, "norm"), (RuleLost, "wi")]


def test_rules_of_a_variable_come_first() -> None:
    state = {"a": param(("embed",), 8, sharding_rules=(("embed", "y"),))}
    (found,) = describe_shardings(state, MESH, RULES)
    assert (found.spec, found.silent) == (P("y"), ())


def test_without_rules_names_are_mesh_axes() -> None:
    (found,) = describe_shardings({"a": param(("x", "gone"), 8, 8)}, MESH, ())
    assert found.spec == P("x", None)
    assert found.silent == (NameUnmatched("a", 1, "gone"),)


def test_a_composite_value_has_a_sharding_for_each_array() -> None:
    with nnx.use_eager_sharding(False):
        pair = nnx.Param((jnp.zeros((8, 4)), jnp.ones((1, 4))), out_sharding=("embed", "mlp"))
    (found,) = describe_shardings({"a": pair}, MESH, RULES)
    assert found.shapes == ((8, 4), (1, 4))
    assert [one.spec for one in found.shardings] == [P("x", "y"), P(None, "y")]


def test_arrays_outside_variables_are_listed_without_names() -> None:
    (found,) = describe_shardings([jnp.zeros(3)], MESH, RULES)
    assert (found.path, found.names, found.shardings) == ("0", None, (NamedSharding(MESH, P()),))


def test_names_that_do_not_fit_are_refused_with_the_path() -> None:
    with pytest.raises(ValueError, match="a: expected a size divisible by 4"):
        describe_shardings({"a": param(("mlp",), 6)}, MESH, RULES)
