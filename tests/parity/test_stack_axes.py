"""Stacks along every axis: the built-in models have theirs at axis 1, where some faults do not show."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.nn.loops import loop
from nnx_migrate.parity import ParityCase, check
from nnx_migrate.parity.report import ParityReport

X = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
NAMES = ("embed", "mlp")


class LinenLayer(nn.Module):
    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        init = nn.with_logical_partitioning(nn.initializers.lecun_normal(), NAMES)
        return x + jax.nn.relu(x @ self.param("kernel", init, (4, 4))), None


class LinenStack(nn.Module):
    axis: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        stack = nn.scan(
            LinenLayer,
            variable_axes={"params": self.axis},
            split_rngs={"params": True},
            length=3,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )
        return stack(name="layers")(x, None)[0]


class Layer(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        init = nnx.with_metadata(nnx.initializers.lecun_normal(), logical_axes=NAMES)
        self.kernel = nnx.Param(init(rngs.params(), (4, 4)))

    def __call__(self, x: Any, _: Any) -> Any:
        return x + jax.nn.relu(x @ self.kernel[...]), None


class Stack(nnx.Module):
    def __init__(self, axis: int, *, rngs: nnx.Rngs) -> None:
        self.layers = nnm.scan(
            Layer,
            variable_axes={"params": axis},
            split_rngs={"params": True},
            length=3,
            metadata_params={nnx.PARTITION_NAME: "layers"},
        )(rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.layers(x, None)[0]


def compared(linen: int, nnx: int) -> ParityReport:
    return check(
        ParityCase(
            linen=LinenStack(linen),
            nnx=lambda rngs: Stack(nnx, rngs=rngs),
            inputs=(X,),
            mesh={"data": 1},
            axis_rules=(("embed", "data"),),
            steps=2,
        )
    )


@pytest.mark.parametrize("axis", [0, 2])
def test_a_stack_along_any_axis_is_the_same_program(axis: int) -> None:
    report = compared(axis, axis)
    assert report.verdict in ("identical", "equal_by_rules"), report.to_json()
    assert report.check("specs").status == report.check("specs_after_step").status == "pass"


def test_linen_itself_names_an_axis_from_the_end_one_place_too_early() -> None:
    """It inserts the name at -1 of the names of one layer (flax 0.12.8, core/meta.py)."""
    report = compared(-1, -1)
    failed = {one.name for one in report.checks if one.status == "fail"}
    assert failed == {"specs", "specs_after_step"}
    line = "params/layers/kernel: names: Linen (embed, layers, mlp), NNX (embed, mlp, layers)"
    assert line in report.check("specs").details


def test_names_of_a_stack_along_another_axis_fail_the_specs() -> None:
    report = compared(0, 2)
    assert report.check("specs").status == "fail"
    line = "params/layers/kernel: names: Linen (layers, embed, mlp), NNX (embed, mlp, layers)"
    assert line in report.check("specs").details


@pytest.mark.parametrize(("axis", "is_seen"), [(1, False), (2, True)])
def test_a_loop_that_swaps_axes_is_seen_where_they_are_not_neighbours(
    axis: int, is_seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant "the loop over another axis"; 1, where the built-in models stack, does not show it."""
    monkeypatch.setattr(loop, "to_front", lambda x, place: x.swapaxes(0, place))
    report = compared(axis, axis)
    assert (report.verdict == "different") is is_seen
    assert (report.check("forward").status == "fail") is is_seen
