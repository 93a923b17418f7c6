"""Names of axes without a mesh: what Linen names has to be named alike."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import numpy as np
import pytest
from flax import nnx

from nnx_migrate.parity import ParityCase, check

X = np.ones((2, 4), np.float32)
NAMES = ("embed", "mlp")


class Model(nn.Module):
    names: tuple[str, ...] | None = NAMES

    @nn.compact
    def __call__(self, x: Any) -> Any:
        init = nn.initializers.lecun_normal()
        if self.names:
            init = nn.with_logical_partitioning(init, self.names)
        return nn.Dense(3, kernel_init=init)(x)


class NnxModel(nnx.Module):
    def __init__(self, names: tuple[str, ...] | None, rngs: nnx.Rngs) -> None:
        init = nnx.initializers.lecun_normal()
        if names:
            init = nnx.with_metadata(init, logical_axes=names)
        self.Dense_0 = nnx.Linear(4, 3, kernel_init=init, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.Dense_0(x)


@pytest.mark.parametrize(
    ("ours", "theirs", "lines"),
    [
        (NAMES, NAMES, []),
        (NAMES, None, ["params/Dense_0/kernel: names: Linen (embed, mlp), NNX no names"]),
        (
            NAMES,
            ("mlp", "embed"),
            ["params/Dense_0/kernel: names: Linen (embed, mlp), NNX (mlp, embed)"],
        ),
    ],
)
def test_names_are_compared_without_a_mesh(ours: Any, theirs: Any, lines: list[str]) -> None:
    report = check(
        ParityCase(linen=Model(ours), nnx=lambda rngs: NnxModel(theirs, rngs), inputs=(X,))
    )
    found = report.check("specs")
    assert found.status == ("fail" if lines else "pass")
    assert list(found.details) == [*lines, "only the names of axes: the case has no mesh"]
    line = "specs: the case has no mesh: only names of axes are compared, no shardings and no "
    assert any(one.startswith(line) for one in report.not_checked)


def test_names_that_linen_has_not_are_no_difference_without_a_mesh() -> None:
    report = check(
        ParityCase(linen=Model(None), nnx=lambda rngs: NnxModel(NAMES, rngs), inputs=(X,))
    )
    assert report.check("specs").status == "not_run"
    assert report.ok


def test_names_that_cannot_be_read_fail_without_a_mesh() -> None:
    def misnamed(rngs: nnx.Rngs) -> NnxModel:
        model = NnxModel(NAMES, rngs)
        model.Dense_0.kernel.set_metadata(logical_axes=3)
        return model

    report = check(ParityCase(linen=Model(), nnx=misnamed, inputs=(X,)))
    found = report.check("specs")
    assert (found.status, report.verdict) == ("fail", "different")
    assert found.details[0].startswith("NNX: ValueError: ")
