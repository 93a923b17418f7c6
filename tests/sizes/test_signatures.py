"""The arguments that summaries declare are those of the functions, in their order."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen

from nnx_migrate.sizes.library import dispatch
from tests.sizes.inference import compact, in_features, sizes_of

MODULES = (jnp, jax.nn, jnp.linalg, linen)
TABLES = [("jax.lax", jax.lax, dispatch._LAX)] + [
    (module.__name__, module, dispatch._ARRAYS) for module in MODULES
]
DECLARED = [
    pytest.param(getattr(module, name), summary.signature, id=f"{where}.{name}")
    for where, module, table in TABLES
    for name, summary in table.items()
    if hasattr(module, name) and hasattr(summary, "signature")
    if (module, name)
    not in ((linen, "zeros"), (linen, "ones"))  # initialisers, whose shape is unknown
]


def _order(function: Any) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [n for n, one in inspect.signature(function).parameters.items() if one.kind in kinds]


@pytest.mark.parametrize(("function", "signature"), DECLARED)
def test_parameters_stand_where_the_summary_reads_them(function: Any, signature: Any) -> None:
    if signature.takes_any:
        return
    for real, read in zip(_order(function)[1:], signature.positional[1:], strict=False):
        assert signature.names.get(real, real) == read or {real, read} <= {"order", "shape"}


def test_many_are_compared() -> None:
    assert len(DECLARED) > 100


@pytest.mark.parametrize(
    "made",
    [
        "jnp.tanh(nn.Dense(7)(x), strange=1)",
        "jnp.concatenate([nn.Dense(7)(x)], -1, None, None, 3)",
        "jnp.squeeze(nn.Dense(7)(x), 0, 1)",
        "jnp.zeros((2, 7), strange=1)",
        "nn.max_pool(nn.Dense(7)(x), (2, 2), strange=1)",
        "jnp.sum(nn.Dense(7)(x), *axes)",
        "jnp.sum(nn.Dense(7)(x), 1, **options)",
    ],
)
def test_a_call_with_another_argument_has_an_unknown_shape(made: str) -> None:
    body = f"b, t, d = x.shape\ny = {made}\nreturn nn.Dense(3)(y)"
    found = in_features(sizes_of(compact(body, arguments="x, axes, options")))[-1]
    assert found in ("Dense_0_in_features", "Dense_1_in_features")  # its caller says it
