"""Elementwise functions broadcast: beside an array of unknown shape, an axis of 1 says nothing."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, in_features, sizes_of

FIELDS = "width: int"
UNKNOWN = "jax.lax.top_k(x, 3)[0]"


@pytest.mark.parametrize(
    "made",
    [
        f"jnp.maximum({UNKNOWN}, nn.Dense(1)(x))",
        f"jnp.multiply(nn.Dense(1)(x), {UNKNOWN})",
        f"jnp.clip(nn.Dense(1)(x), -1, {UNKNOWN})",
        f"(nn.Dense(1)(x) > {UNKNOWN}).astype(x.dtype)",
        f"jnp.where({UNKNOWN} > 0, nn.Dense(1)(x), 0.0)",
        f"jnp.asarray([{UNKNOWN}, {UNKNOWN}])",
    ],
)
def test_an_axis_of_one_may_become_longer(made: str) -> None:
    body = f"y = {made}\nreturn nn.Dense(3)(y)"
    found = in_features(sizes_of(compact(body, fields=FIELDS)))[-1]
    assert found in ("Dense_0_in_features", "Dense_1_in_features")  # its caller says it


@pytest.mark.parametrize(
    ("made", "size"),
    [
        ("jnp.where(x > 0, nn.Dense(1)(x), 0.0)", "in_features"),
        ("jnp.where(nn.Dense(7)(x) > 0, nn.Dense(1)(x), 0.0)", "7"),
        (f"jnp.maximum({UNKNOWN}, nn.Dense(7)(x))", "7"),
        (f"jnp.where({UNKNOWN} > 0, nn.Dense(7)(x), 0.0)", "7"),
        ("jnp.where(x > 0, nn.Dense(1)(x) * 0 + nn.Dense(7)(x), -jnp.inf)", "7"),
        ("jnp.maximum(nn.Dense(1)(x), -jnp.inf)", "1"),
        ("jnp.maximum(nn.Dense(1)(x), jnp.array(0.0))", "1"),
        ("jnp.asarray(nn.Dense(1)(x), x.dtype)", "1"),
        ("jnp.array([nn.Dense(7)(jnp.zeros((4, 2))), jnp.zeros((4, 7))])", "7"),
        ("jnp.array([[1.0, 2.0, self.width]])", "3"),
    ],
)
def test_the_last_axis_is_known(made: str, size: str) -> None:
    body = f"y = {made}\nreturn nn.Dense(3)(y)"
    assert in_features(sizes_of(compact(body, fields=FIELDS)))[-1] == size


@pytest.mark.parametrize("call", ["all(axis=1)", "sum(axis=-2)", "max(1, keepdims=True)"])
def test_code_that_no_call_reaches_may_name_an_axis_that_is_not_there(call: str) -> None:
    body = f"h = nn.Dense(7)(x)\nif mask is not None:\n    h = h * (h.sum() > 0).{call}\nreturn nn.Dense(3)(h)"
    found = sizes_of(compact(body, fields=FIELDS, arguments="x, mask=None"))
    assert not found.problems
