"""Which of several submodules that a class cannot hold lazily is named."""

from __future__ import annotations

import ast
from itertools import permutations
from typing import Any

import pytest

from nnx_migrate.rewrite.classes.checks.lazy_submodules import _Submodules
from nnx_migrate.sizes import ClassSizes, Site, SiteKind

TREE = ast.parse("a(3)\nb(4), c(5)\nd(6)")
CALLS = sorted(
    (one for one in ast.walk(TREE) if isinstance(one, ast.Call)),
    key=lambda call: (call.lineno, call.col_offset),
)


@pytest.mark.parametrize("calls", [*permutations(CALLS)])
def test_they_are_checked_as_they_stand(calls: tuple[ast.Call, ...]) -> None:
    sites = {id(one): Site(one, SiteKind.LAYER, "flax.linen.Dense") for one in calls}
    nothing: Any = None
    base = frozenset({id(CALLS[0])})
    found = _Submodules(nothing, nothing, {}, ClassSizes(sites=sites), nothing, base)
    assert found._in_order(frozenset(sites)) == [id(one) for one in CALLS[1:]]
