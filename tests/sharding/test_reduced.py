"""What a spec says of reductions survives every step (jax refuses to iterate over such specs)."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from nnx_migrate.sharding import construct_named_sharding, extract_named_sharding
from nnx_migrate.sharding.fitting import fit_spec

P = PartitionSpec
MESH = AbstractMesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def parameter(spec: PartitionSpec, *shape: int) -> nnx.Param[Any]:
    with nnx.use_eager_sharding(False):
        return nnx.Param(jax.ShapeDtypeStruct(shape, "float32"), out_sharding=spec)


def test_a_resolved_spec_of_a_variable_keeps_its_reductions() -> None:
    spec = P("x", reduced={"y"})
    found = construct_named_sharding({"a": parameter(spec, 4, 4)}, MESH)
    assert extract_named_sharding(found) == {"a": NamedSharding(MESH, spec)}


@pytest.mark.parametrize(
    ("spec", "shape", "expected"),
    [
        (P("x", reduced={"y"}), (4,), P("x", reduced={"y"})),
        (P("x", reduced={"y"}), (3,), P(None, reduced={"y"})),
        (P(None, "x", reduced={"y"}), (4,), P(None, reduced={"y"})),
    ],
)
def test_dropping_what_does_not_fit_keeps_reductions(
    spec: PartitionSpec, shape: tuple[int, ...], expected: PartitionSpec
) -> None:
    assert fit_spec(spec, shape, MESH.shape, "drop") == expected


def test_a_reduced_spec_that_does_not_fit_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="expected a size divisible by 2"):
        fit_spec(P("x", reduced={"y"}), (3,), MESH.shape)
