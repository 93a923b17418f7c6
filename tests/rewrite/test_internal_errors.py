"""A bug of ours in one class refuses that class and leaves the others alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnx_migrate.model import Outcome, RewriteResult
from nnx_migrate.rewrite import conversions
from nnx_migrate.rewrite.engine import rewrite_project
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import SourceText
from tests.rewrite.projects import rewrite

SOURCE = """\
import flax.linen as nn


class Good(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)


class Bad(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)
"""


def _rewrite() -> RewriteResult:
    root = Path("/")
    source = SourceText(root / "module.py", SOURCE)
    return rewrite_project(RewriteRequest(root, (source,), base=root))


def test_a_conversion_that_raises_refuses_its_class_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    convert = conversions.convert_class

    def broken(project, cls, sizes, context):  # type: ignore[no-untyped-def]
        if cls.node.name == "Bad":
            raise KeyError("lost")
        return convert(project, cls, sizes, context)

    monkeypatch.delenv("NNX_MIGRATE_DEBUG", raising=False)
    monkeypatch.setattr(conversions, "convert_class", broken)
    result = _rewrite()
    assert {one.name: one.outcome for one in result.classes} == {
        "module.Good": Outcome.REWRITTEN,
        "module.Bad": Outcome.REFUSED,
    }
    assert any("KeyError('lost')" in one.message for one in result.findings)


def test_the_debug_switch_lets_the_bug_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setenv("NNX_MIGRATE_DEBUG", "1")
    monkeypatch.setattr(conversions, "convert_class", broken)
    with pytest.raises(KeyError, match="lost"):
        _rewrite()


@pytest.mark.parametrize("base", ["nn.initializers.Initializer", "nn.relu", "nn.no_such"])
def test_a_class_of_a_base_that_is_no_module_is_no_fault_of_ours(base: str) -> None:
    text = f"import flax.linen as nn\n\n\nclass Scaled({base}):\n    width: int = 3\n"
    assert rewrite({"m.py": text}).references.balanced
