"""Names of nn.Module and its decorators: what they become, and where they are refused."""

from __future__ import annotations

import pytest

from nnx_migrate.constructs import name_rule
from nnx_migrate.constructs.common.base import Code, Context
from tests.constructs.convert import refusal, text_of


@pytest.mark.parametrize(
    ("name", "context", "after"),
    [
        ("Module", Context.BASE, "nnx.Module"),
        ("Module", Context.ANNOTATION, "nnx.Module"),
        ("Variable", Context.ANNOTATION, "nnx.Variable"),
        ("compact", Context.DECORATOR, ""),
        ("nowrap", Context.DECORATOR, ""),
    ],
)
def test_the_place_decides_what_a_name_becomes(name: str, context: Context, after: str) -> None:
    found = name_rule(f"flax.linen.{name}", context)
    assert isinstance(found, Code)
    assert text_of(found) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.compact", "other than as a decorator"),
        ("nn.nowrap(f)", "other than as a decorator"),
        ("nn.Variable", "used as a value"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
