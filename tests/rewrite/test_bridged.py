"""Classes that stay Linen behind ToNNX: what the report says, before and after."""

from __future__ import annotations

from pathlib import Path

from nnx_migrate.model import Outcome, RewriteResult
from nnx_migrate.rewrite.engine import rewrite_project
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import SourceText

SOURCE = """\
import flax.linen as nn


class Hard(nn.Module):
    @nn.compact
    def __call__(self, x):
        i = 0
        while i < 2:
            x = nn.Dense(4)(x)
            i += 1
        return x


class Parent(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(Hard()(x))
"""

ALONE = SOURCE.partition("class Parent")[0].rstrip() + "\n"


def _rewrite(text: str) -> RewriteResult:
    root = Path("/")
    source = SourceText(root / "module.py", text)
    return rewrite_project(RewriteRequest(root, (source,), base=root))


def _outcomes(result: RewriteResult) -> dict[str, Outcome]:
    return {one.name: one.outcome for one in result.classes}


def test_a_refused_class_that_a_converted_one_builds_is_bridged() -> None:
    result = _rewrite(SOURCE)
    assert _outcomes(result) == {
        "module.Hard": Outcome.BRIDGED,
        "module.Parent": Outcome.REWRITTEN,
    }
    assert result.references.bridged == 3
    assert result.references.refused == 0
    code = result.files[0].code
    assert code is not None
    assert "nnm.ToNNX(Hard(), rngs=rngs)" in code


def test_a_class_behind_a_bridge_stays_bridged_on_the_next_run() -> None:
    code = _rewrite(SOURCE).files[0].code
    assert code is not None
    again = _rewrite(code)
    assert again.files[0].code is None
    assert _outcomes(again) == {"module.Hard": Outcome.BRIDGED}


def test_a_refused_class_that_nothing_converted_builds_is_refused() -> None:
    result = _rewrite(ALONE)
    assert _outcomes(result) == {"module.Hard": Outcome.REFUSED}
    assert result.references.bridged == 0
