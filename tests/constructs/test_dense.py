"""Dense: constructor calls before and after, and what is refused."""

from __future__ import annotations

import pytest

from nnx_migrate.constructs.common.base import Code
from nnx_migrate.model import Confidence
from tests.constructs.convert import converted, refusal, text, text_of


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.Dense(64)", "nnx.Linear(in_features, 64, rngs=rngs)"),
        ("nn.Dense(features=self.f)", "nnx.Linear(in_features, self.f, rngs=rngs)"),
        ("nn.Dense(8, False)", "nnx.Linear(in_features, 8, use_bias=False, rngs=rngs)"),
        ("nn.Dense(8, name='out')", "nnx.Linear(in_features, 8, rngs=rngs)"),
        ("nn.Dense(8, parent=None)", "nnx.Linear(in_features, 8, rngs=rngs)"),
        (
            "nn.Dense(use_bias=False, features=8, dtype=jnp.bfloat16)",
            "nnx.Linear(in_features, 8, use_bias=False, dtype=jnp.bfloat16, rngs=rngs)",
        ),
        (
            "nn.Dense(8, kernel_init=nn.initializers.normal(0.02))",
            "nnx.Linear(in_features, 8, kernel_init=nnx.initializers.normal(0.02), rngs=rngs)",
        ),
        (
            "nn.Dense(8, kernel_init=jax.nn.initializers.zeros)",
            "nnx.Linear(in_features, 8, kernel_init=jax.nn.initializers.zeros, rngs=rngs)",
        ),
        ("nn.Dense(8, dot_general=None)", "nnx.Linear(in_features, 8, rngs=rngs)"),
        ("nn.Dense(8, dot_general_cls=None)", "nnx.Linear(in_features, 8, rngs=rngs)"),
        (
            "nn.Dense(8, dot_general=self.dot)",
            "nnm.factory.Dense(8, dot_general=self.dot, in_features=in_features, rngs=rngs)",
        ),
        ("nn.Dense(*args)", "nnm.factory.Dense(*args, in_features=in_features, rngs=rngs)"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.Dense()", "without 'features'"),
        ("nn.Dense(use_bias=False)", "without 'features'"),
        ("nn.Dense(8, feature=3)", "unknown argument 'feature'"),
        ("nn.Dense(8, features=3)", "given twice"),
        ("nn.Dense(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)", "13 positional arguments"),
        ("nn.Dense(8, dot_general_cls=nn.Fp8DotGeneralOp)", "dot_general_cls"),
        ("nn.Dense.from_config(c)", "no rule knows"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


@pytest.mark.parametrize("before", ["nn.Dense(8)", "nn.Dense(**options)"])
def test_an_unknown_size_is_refused(before: str) -> None:
    assert refusal(before, {}).reason.startswith("size unknown")


def test_unpacked_keywords_go_through_the_factory_and_ask_for_a_look() -> None:
    found = converted("nn.Dense(8, **options)")
    assert isinstance(found, Code)
    assert text_of(found) == "nnm.factory.Dense(8, **options, in_features=in_features, rngs=rngs)"
    assert found.findings
    assert found.imports == {"nnm"}
    assert found.confidence is Confidence.REVIEW
