"""Layouts as plain data: canonical form, comparison, and the way through a file."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from nnx_migrate.parity.checks.shardings import specs, specs_after_step
from nnx_migrate.parity.evaluation.results import SideResult, load, save
from nnx_migrate.parity.evaluation.shardings import (
    ArrayLayout,
    Layouts,
    layout_of,
    layout_on,
    show,
    unit_axes,
)

KERNEL = ArrayLayout(
    rank=2,
    names=("embed", "mlp"),
    spec=(("fsdp", "context"), ("tensor",)),
    sharding=(("fsdp",), ("tensor",)),
    placed=(("fsdp",), ("tensor",)),
    bytes=64,
)
BIAS = ArrayLayout(rank=1, names=None, spec=(), sharding=(), placed=(), bytes=16)
COUNT = dataclasses.replace(BIAS, rank=0)
LAYOUTS: Layouts = {"params/kernel": KERNEL, "params/bias": BIAS, "opt_state/0/count": COUNT}


def changed(**changes: Any) -> Layouts:
    return {**LAYOUTS, "params/kernel": dataclasses.replace(KERNEL, **changes)}


def side(stack: Any, layouts: Layouts, after: Layouts | None = None, **more: Any) -> SideResult:
    after = layouts if after is None else after
    return SideResult(stack, stack, layouts=layouts, layouts_after=after, **more)


@pytest.mark.parametrize(
    ("spec", "layout"),
    [
        (P("a", None), (("a",),)),
        (P(None, ("a", "b"), ()), ((), ("a", "b"))),
        (P(), ()),
        (P(P.UNCONSTRAINED, None), (("UNCONSTRAINED",),)),
    ],
)
def test_specs_are_told_apart_by_what_they_split(spec: P, layout: Any) -> None:
    assert layout_of(spec) == layout


def test_axes_of_size_1_split_nothing() -> None:
    mesh = Mesh(
        np.array(jax.devices()[:1]).reshape(1, 1), ("a", "b"), axis_types=(AxisType.Auto,) * 2
    )
    assert layout_on(NamedSharding(mesh, P(("a", "b"), None))) == ()


def test_an_array_on_one_device_is_split_by_nothing() -> None:
    assert layout_on(SingleDeviceSharding(jax.devices()[0])) == ()


def test_axes_that_the_mesh_does_not_use_are_named() -> None:
    assert unit_axes(LAYOUTS) == ("context",)


def test_a_layout_is_shown_dimension_by_dimension() -> None:
    assert show(((), ("a", "b"), ("c",))) == "P(-, a+b, c)"


def test_equal_sides_pass_and_arrays_without_names_are_listed() -> None:
    check = specs(side("linen", LAYOUTS), side("nnx", LAYOUTS))
    assert (check.status, check.leaves) == ("pass", 3)
    assert check.details == (
        "without logical axis names: params/bias",
        "in specs, but of size 1 on this mesh: context",
    )


@pytest.mark.parametrize(
    ("theirs", "line"),
    [
        ({}, "params/kernel: only in Linen"),
        ({**LAYOUTS, "params/scale": BIAS}, "params/scale: only in NNX"),
        (changed(names=None), "params/kernel: names: Linen (embed, mlp), NNX no names"),
        (
            changed(names=("embed", None)),
            "params/kernel: names: Linen (embed, mlp), NNX (embed, -)",
        ),
        (
            changed(spec=(("fsdp",), ("tensor",))),
            (
                "params/kernel: spec of (embed, mlp): Linen P(fsdp+context, tensor), "
                "NNX P(fsdp, tensor)"
            ),
        ),
        (
            changed(sharding=()),
            "params/kernel: sharding of (embed, mlp): Linen P(fsdp, tensor), NNX P()",
        ),
        (
            changed(placed=(("fsdp",),)),
            "params/kernel: placed of (embed, mlp): Linen P(fsdp, tensor), NNX P(fsdp)",
        ),
    ],
)
@pytest.mark.parametrize("compare", [specs, specs_after_step])
def test_any_difference_fails(compare: Any, theirs: Layouts, line: str) -> None:
    check = compare(side("linen", LAYOUTS), side("nnx", theirs))
    assert check.status == "fail"
    assert line in check.details


def test_nothing_to_compare_fails() -> None:
    theirs = {"params/other": KERNEL}
    check = specs(side("linen", LAYOUTS), side("nnx", theirs))
    assert "nothing was compared" in check.details


def test_without_any_name_the_check_did_not_run() -> None:
    bare: Layouts = {"params/bias": BIAS}
    check = specs(side("linen", bare), side("nnx", bare))
    assert check.status == "not_run"
    assert check.details == ("no array has logical axis names on either side",)


def test_a_step_that_changes_names_fails_even_where_linen_agrees() -> None:
    after = changed(names=("mlp", "embed"))
    check = specs_after_step(side("linen", LAYOUTS, after), side("nnx", LAYOUTS, after))
    assert check.status == "fail"
    assert check.details[0] == (
        "NNX: params/kernel: names (embed, mlp) before the step, (mlp, embed) after it"
    )


def test_a_place_that_the_compiler_chose_on_both_sides_is_told() -> None:
    after = changed(placed=())
    check = specs_after_step(side("linen", LAYOUTS, after), side("nnx", LAYOUTS, after))
    assert check.status == "pass"
    assert check.details == (
        (
            "placed by the compiler, alike on both sides: params/kernel: "
            "P(fsdp, tensor) before the step, P() after it"
        ),
    )


@pytest.mark.parametrize(
    ("linen", "nnx", "status", "detail"),
    [
        ("no such axis", None, "fail", "asked for, and Linen itself cannot: no such axis"),
        (None, "no such axis", "fail", "NNX: no such axis"),
    ],
)
def test_a_side_that_raises(linen: Any, nnx: Any, status: str, detail: str) -> None:
    def errors(text: str | None) -> dict[str, str]:
        return {} if text is None else {"specs": text}

    check = specs(side("linen", LAYOUTS, errors=errors(linen)), side("nnx", {}, errors=errors(nnx)))
    assert (check.status, check.details) == (status, (detail,))


def test_layouts_survive_a_file(tmp_path: Path) -> None:
    losses = {"step 1": np.array(2.5, np.float32)}
    before = side("nnx", LAYOUTS, changed(placed=()), losses=losses)
    save(before, tmp_path)
    after = load(tmp_path)
    assert (after.layouts, after.layouts_after) == (before.layouts, before.layouts_after)
    assert after.losses == before.losses
