"""Sizes through library functions whose shapes the project declares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nnx_migrate.sizes import analyse
from nnx_migrate.source.declared import signature_of
from tests.sizes.inference import compact, in_features, project_of

DENSE = "nn.Dense(self.wide)(x)"
CONV = "nn.Conv(5, (1, 1))(x)"


def last_size(signature: str, body: str) -> str | None:
    """``in_features`` of a Dense over what the declared ``lib.f`` made in ``body``."""
    source = compact(f"{body}\nreturn nn.Dense(3)(y)", fields="wide: int", before="import lib")
    project = replace(project_of({"main": source}), declared={"lib.f": signature_of(signature)})
    return in_features(analyse(project)["main.Model"])[-1]


@pytest.mark.parametrize(
    ("signature", "body", "size"),
    [
        ("(a) -> a", f"y = lib.f({DENSE})", "self.wide"),
        ("(a[..., d]) -> [..., d // 2]", f"y = lib.f({DENSE})", "self.wide // 2"),
        ("(a[..., d], n) -> [..., d * n]", f"y = lib.f({DENSE}, n=4)", "self.wide * 4"),
        ("(a[..., d], *) -> [..., d]", f"y = lib.f({DENSE}, 1, b=2)", "self.wide"),
        ("(a[..., d]) -> ([..., d], [..., 7])", f"_, y = lib.f({DENSE})", "7"),
        ("(a[..., h, w, c]) -> [..., c * 2]", f"y = lib.f({CONV})", "10"),
        ("(a[..., d], b[..., e]) -> [..., d + e]", f"y = lib.f({DENSE}, {CONV})", "self.wide + 5"),
    ],
)
def test_a_declared_function_gives_its_size(signature: str, body: str, size: str) -> None:
    assert last_size(signature, body) == size


@pytest.mark.parametrize(
    ("signature", "body"),
    [
        ("(a[..., d]) -> [..., d]", f"y = lib.f({DENSE}, 1)"),
        ("(a[..., d]) -> [..., d]", f"y = lib.f({DENSE}, other=1)"),
        ("(a[..., d]) -> [..., d]", f"y = lib.f(*parts({DENSE}))"),
        ("(a[..., d], n) -> [..., d * n]", f"y = lib.f({DENSE})"),
        ("(a[c, d]) -> [c, d]", "y = lib.f(jnp.zeros((2, 3, 4)))"),
        ("(a[..., c, d]) -> [..., d]", "y = lib.f(jnp.zeros((3,)))"),
        ("(a, b) -> b", f"y = lib.f({DENSE})"),
    ],
)
def test_a_call_that_does_not_fit_its_declaration_asks_for_the_size(
    signature: str, body: str
) -> None:
    found = last_size(signature, body)
    assert found is not None
    assert found.endswith("_in_features")  # asked for as a constructor argument
