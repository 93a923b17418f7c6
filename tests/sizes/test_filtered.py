"""Items picked from known ones: certain as far as every one before them is."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, in_features, sizes_of

OUTPUTS = "outputs = tuple(v for v in ({items}) if {test})\nreturn nn.Dense(1)({read})"
SEVEN, EIGHT = "jnp.ones((2, 7))", "jnp.ones((2, 8))"
MAYBE = f"{EIGHT} if flag else None"


def width(items: str, read: str, test: str = "v is not None") -> str | None:
    body = OUTPUTS.format(items=items, read=read, test=test)
    return in_features(sizes_of(compact(body, arguments="x, flag=False")))[0]


@pytest.mark.parametrize(
    ("items", "read", "size"),
    [
        (f"{SEVEN}, {EIGHT}", "outputs[1]", "8"),
        (f"None, {EIGHT}", "outputs[0]", "8"),
        (f"{SEVEN}, {MAYBE}", "outputs[0]", "7"),
        (f"{SEVEN}, {MAYBE}", "outputs[1]", "8"),
        (f"{SEVEN}, {EIGHT}, {MAYBE}", "outputs[1:][0]", "8"),
        (f"{SEVEN}, {MAYBE}", "((x,) + outputs)[1]", "7"),
        (f"{SEVEN}, {MAYBE}", "((x,) + outputs[1:])[0]", "in_features"),
    ],
)
def test_an_item_that_is_certainly_there_has_its_place(items: str, read: str, size: str) -> None:
    assert width(items, read) == size


@pytest.mark.parametrize(
    ("items", "read"),
    [
        (f"{MAYBE}, {SEVEN}", "outputs[0]"),
        (f"{SEVEN}, {MAYBE}", "outputs[-1]"),
        (f"{SEVEN}, {MAYBE}, {SEVEN}", "outputs[1]"),
        (f"{SEVEN}, {MAYBE}", "outputs[:-1][0]"),
    ],
)
def test_an_item_behind_one_that_may_be_missing_is_not_guessed(items: str, read: str) -> None:
    assert width(items, read) == "Dense_0_in_features"


def test_a_filter_that_nobody_knows_makes_every_item_doubtful() -> None:
    assert width(f"{SEVEN}, {EIGHT}", "outputs[0]", "mystery(v)") == "Dense_0_in_features"
