"""Stacking axes that variables record, in their specs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import linen, nnx
from jax.sharding import PartitionSpec

from tests.sharding.variables import RULES, param, spec_of

P = PartitionSpec


@pytest.fixture(autouse=True)
def _constructed_without_a_mesh() -> Any:
    """Names are given without a mesh here, where NNX would want to shard at once."""
    with nnx.use_eager_sharding(False):
        yield


@pytest.mark.parametrize(
    ("metadata", "shape", "expected"),
    [
        ({"partition_name": "layers", "param_scan_axis": 0}, (2, 8, 8), P(None, "fsdp", "expert")),
        ({"partition_name": "layers", "param_scan_axis": 1}, (8, 2, 8), P("fsdp", None, "expert")),
        ({"partition_name": "layers", "param_scan_axis": 2}, (8, 8, 2), P("fsdp", "expert", None)),
        ({"partition_name": "heads", "param_scan_axis": 1}, (8, 2, 8), P("fsdp", None, "expert")),
        ({"partition_name": None, "param_scan_axis": 0}, (2, 8, 8), P(None, "fsdp", "expert")),
        (
            {"partition_name": ("layers", "stage"), "param_scan_axis": (1, 0)},
            (2, 8, 2, 8),
            P(None, "fsdp", None, "expert"),
        ),
    ],
)
def test_recorded_scan_axes_are_inserted(metadata: Any, shape: Any, expected: Any) -> None:
    assert spec_of(param(shape, out_sharding=("embed", "mlp"), **metadata)) == expected


def test_a_stack_whose_names_lack_its_axis() -> None:
    """Stock NNX shifts the names by one dimension; Linen's box has the axis in its names."""
    box = linen.LogicallyPartitioned(jnp.zeros((2, 8, 8)), ("embed", "mlp"))
    names = box.add_axis(0, {linen.PARTITION_NAME: "layers"}).names
    stacked = param(
        (2, 8, 8), out_sharding=("embed", "mlp"), partition_name="layers", param_scan_axis=0
    )
    with nnx.logical_axis_rules((("embed", "fsdp"), ("mlp", "expert"))):
        stock = nnx.get_partition_spec({"x": stacked})["x"].get_raw_value()
    assert stock == P("fsdp", "expert")
    assert spec_of(stacked) == linen.logical_to_mesh_axes(names, RULES) == P(None, "fsdp", "expert")


def test_a_scan_axis_that_the_names_have_is_not_inserted_again() -> None:
    names = ("embed", "layers", "mlp")
    stacked = param((8, 2, 8), out_sharding=names, partition_name="layers", param_scan_axis=1)
    assert spec_of(stacked) == P("fsdp", None, "expert")


def test_a_scan_axis_without_an_index_must_stand_in_the_names() -> None:
    names = {"partition_name": "layers", "param_scan_axis": None}
    for metadata in (names, {"partition_name": "layers"}):
        placed = param((2, 8, 8), out_sharding=("layers", "embed", "mlp"), **metadata)
        assert spec_of(placed) == P(None, "fsdp", "expert")
        lacking = param((2, 8, 8), out_sharding=("embed", "mlp"), **metadata)
        with pytest.raises(
            ValueError, match=r"^x: expected the stacking axis 'layers' .* no index"
        ):
            spec_of(lacking)
