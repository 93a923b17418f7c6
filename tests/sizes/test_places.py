"""Scope names under which sizes that nobody knows are asked for."""

from __future__ import annotations

import pytest

from tests.sizes.inference import LAZY, compact, in_features, sizes_of


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ("if self.a:\n    y = nn.Dense(2)(g(x))\nelse:\n    y = nn.Dense(3)(g(x))", ["Dense_0"]),
        ("y = nn.Dense(2)(g(x)) if self.a else nn.Dense(3)(g(x))", ["Dense_0"]),
        (
            "nn.Dense(1)(x)\nif self.a:\n    nn.Dense(2)(g(x))\nelse:\n    nn.Dense(2)(x)\n    nn.Dense(3)(g(x))",
            ["Dense_1", "Dense_2"],
        ),
        ("if self.a:\n    nn.Dense(2)(g(x))\n    nn.Dense(3)(g(x))", ["Dense_0", "Dense_1"]),
        ("nn.Dense(2, name=None)(x)\nnn.Dense(3, name=None)(g(x))", ["Dense_1"]),
        ("nn.Dense(2, name=f'{x.ndim}')(x)\nnn.Dense(3)(g(x))", ["Dense_0"]),
        ("nn.Dense(2, name=self.b)(x)\nnn.Dense(3)(g(x))", []),
        ("nn.Dense(2, name='Dense_7')(x)\nnn.Dense(3)(g(x))", ["Dense_0"]),
    ],
)
def test_a_place_has_the_name_that_linen_gives_or_counts(body: str, places: list[str]) -> None:
    found = sizes_of(compact(body, fields="a: bool = True", before="from other import g"))
    assert [one.submodule for one in found.new_arguments if one.submodule] == places


def test_what_stands_after_a_condition_has_no_certain_place() -> None:
    body = "if self.a:\n    nn.Dense(2)(x)\nnn.Dense(3)(g(x))"
    found = sizes_of(compact(body, fields="a: bool = True", before="from other import g"))
    assert [one.name for one in found.new_arguments] == ["in_features"]
    assert in_features(found) == ["in_features", LAZY]
