"""A dimension over pipeline stages, and stages as one more data axis."""

from __future__ import annotations

from typing import Any

import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from nnx_migrate.sharding import (
    load_axis_rules,
    pipeline_as_data,
    pipeline_as_data_rules,
    shard_dim_by_stages,
)

P = PartitionSpec
FREE = PartitionSpec.UNCONSTRAINED
SIZES, AXES = (4, 2, 1, 2), ("stage", "fsdp", "data", "tensor")
AUTO = AbstractMesh(SIZES, AXES, axis_types=(AxisType.Auto,) * 4)
EXPLICIT = AbstractMesh(SIZES, AXES, axis_types=(AxisType.Explicit,) * 4)
MIXED = AbstractMesh(SIZES, AXES, axis_types=(AxisType.Explicit,) + (AxisType.Auto,) * 3)

CASES: dict[str, tuple[PartitionSpec | None, int, int, PartitionSpec, PartitionSpec]] = {
    "nothing known": (None, 0, 3, P("stage", FREE, FREE), P("stage", None, None)),
    "a spec": (P(None, "tensor"), 0, 2, P("stage", "tensor"), P("stage", "tensor")),
    "fsdp leaves": (
        P(None, ("fsdp", "tensor"), "fsdp"),
        0,
        3,
        P("stage", "tensor", None),
        P("stage", "tensor", None),
    ),
    "a later dimension": (P("fsdp"), 1, 3, P(None, "stage", FREE), P(None, "stage", None)),
    "a dimension over stages already": (
        P("stage", "fsdp"),
        0,
        2,
        P("stage", None),
        P("stage", None),
    ),
    "fsdp where the stages go": (P("fsdp"), 0, 1, P("stage"), P("stage")),
}


@pytest.mark.parametrize("case", CASES)
def test_a_dimension_is_placed_on_the_stages(case: str) -> None:
    spec, dim, rank, auto, explicit = CASES[case]
    assert shard_dim_by_stages(spec, dim, rank, AUTO) == auto
    assert shard_dim_by_stages(spec, dim, rank, EXPLICIT) == explicit
    NamedSharding(AUTO, auto)
    NamedSharding(EXPLICIT, explicit)


def test_dimensions_left_to_jax_stay_so_under_auto_axes() -> None:
    assert shard_dim_by_stages(P(None, FREE), 0, 2, AUTO) == P("stage", FREE)


def test_a_weight_of_a_stage_is_reduced_over_the_axes_with_several_devices() -> None:
    found = shard_dim_by_stages(P(None, "fsdp"), 0, 2, EXPLICIT, stage_weight=True)
    assert found == P("stage", None, reduced={"fsdp"})
    NamedSharding(EXPLICIT, found)
    assert shard_dim_by_stages(P(None, "fsdp"), 0, 2, AUTO, stage_weight=True) == P("stage", None)
    unknown = shard_dim_by_stages(None, 0, 2, EXPLICIT, stage_weight=True)
    assert unknown == P("stage", None)


@pytest.mark.parametrize(
    ("spec", "dim", "rank", "text"),
    [
        (P(), 2, 2, "expected a dimension from 0 to 1, found 2"),
        (P(), -1, 2, "expected a dimension from 0 to 1, found -1"),
        (P(None, None, None), 0, 2, "expected a spec for 2 dimensions"),
        (P("tensor"), 0, 2, "expected dimension 0 to be free for 'stage', found it over tensor"),
        (P(None, "stage"), 0, 2, "expected 'stage' on dimension 0 only, found it on 1"),
    ],
)
def test_what_does_not_fit_is_refused(spec: Any, dim: int, rank: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        shard_dim_by_stages(spec, dim, rank, AUTO)


def test_a_mesh_of_mixed_axis_types_is_refused() -> None:
    with pytest.raises(ValueError, match="all mesh axes Auto or all Explicit"):
        shard_dim_by_stages(None, 0, 2, MIXED)


def test_stages_become_data_in_every_rule() -> None:
    rules = (
        ("batch", ("data", "stage", "fsdp")),
        ("layers", "stage"),
        ("tokens", "data"),
        ("late", ["fsdp", "data"]),
        ("embed", ("fsdp", "tensor")),
        ("norm", None),
        ("kv", ()),
        ("free", FREE),
    )
    assert pipeline_as_data(rules) == (
        ("batch", ("stage", "data", "fsdp")),
        ("layers", ()),
        ("tokens", ("stage", "data")),
        ("late", ("fsdp", "stage", "data")),
        ("embed", ("fsdp", "tensor")),
        ("norm", None),
        ("kv", ()),
        ("free", FREE),
    )


def test_stages_become_data_in_the_projects_rules_and_their_data_sharding() -> None:
    before = load_axis_rules("default")
    after = pipeline_as_data_rules(before)
    assert after.data_sharding is not None
    assert after.data_sharding[0][:3] == ("stage", "data", "fsdp")
    found = dict(after.logical_axis_rules)
    assert found["activation_batch"] == ("stage", "data", "fsdp", "fsdp_transpose", "expert")
    assert found["layers"] == ()
    assert len(after.logical_axis_rules) == len(before.logical_axis_rules)
    assert pipeline_as_data_rules(after) == after
