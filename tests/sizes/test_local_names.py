"""Size arguments and locals of the same name."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, sizes_of


def argument(body: str, **options: str) -> str:
    (found,) = sizes_of(compact(body, **options)).new_arguments
    return found.name


@pytest.mark.parametrize(
    "body",
    [
        "in_features = x.shape[-1]\nreturn nn.Dense(in_features * 2)(x)",
        "batch, in_features = x.shape\nreturn nn.Dense(in_features * 2)(x)",
        "width = self.n\nreturn nn.Dense(width)(x)",
    ],
)
def test_a_local_that_is_the_size_may_have_its_name(body: str) -> None:
    assert argument(body, fields="n: int") == "in_features"


@pytest.mark.parametrize(
    "body",
    [
        "in_features = compute(self.n)\nreturn nn.Dense(in_features)(x)",
        "in_features, y = compute(self.n)\nreturn nn.Dense(y)(x)",
        "in_features = x.shape[-1]\nin_features = in_features + 1\nreturn nn.Dense(in_features)(x)",
        "make = lambda in_features: in_features + 1\nreturn nn.Dense(make(self.n))(x)",
        "in_features = x.shape[0]\nreturn nn.Dense(in_features)(x)",
    ],
)
def test_a_local_that_is_something_else_keeps_its_name_to_itself(body: str) -> None:
    names = {one.name for one in sizes_of(compact(body, fields="n: int")).new_arguments}
    assert names
    assert "in_features" not in names


def test_a_local_may_hold_the_whole_shape() -> None:
    body = (
        "x_shape = x.shape\nreturn self.param('w', nn.initializers.ones, (x.shape[0], x.shape[1]))"
    )
    assert argument(body) == "x_shape"
