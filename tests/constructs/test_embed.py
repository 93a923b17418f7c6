"""Embed: constructor calls before and after, and what is refused."""

from __future__ import annotations

import pytest

from tests.constructs.convert import refusal, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.Embed(10, 4, dtype=jnp.float32)", "nnx.Embed(10, 4, dtype=jnp.float32, rngs=rngs)"),
        ("nn.Embed(10, 4, jnp.bfloat16)", "nnx.Embed(10, 4, dtype=jnp.bfloat16, rngs=rngs)"),
        ("nn.Embed(10, 4, dtype=d)", "nnm.Embed(10, 4, dtype=d, rngs=rngs)"),
        ("nn.Embed(10, 4, dtype=None)", "nnm.Embed(10, 4, dtype=None, rngs=rngs)"),
        ("nn.Embed(10, 4, param_dtype=d)", "nnm.Embed(10, 4, param_dtype=d, rngs=rngs)"),
        ("nn.Embed(10, features=4)", "nnm.Embed(10, features=4, rngs=rngs)"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.Embed(10)", "without 'features'"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
