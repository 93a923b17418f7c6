"""Functions and types are those of NNX and flax.typing, or of our own under the same name."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import flax.typing
import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate.constructs import functions
from tests.constructs.convert import text

X = jnp.linspace(-1, 1, 12).reshape(3, 4)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.relu", "nnx.relu"),
        ("nn.softmax(x, axis=-1)", "nnx.softmax(x, axis=-1)"),
        ("nn.normalize(x)", "nnx.standardize(x)"),
        ("nn.max_pool(x, (2, 2))", "nnx.max_pool(x, (2, 2))"),
        ("nn.pooling.min_pool(x, (2, 2))", "nnx.min_pool(x, (2, 2))"),
        ("nn.module.merge_param('d', a, b)", "nnm.merge_param('d', a, b)"),
        ("nn.normalization._abs_sq(x)", "nnm.squared_magnitude(x)"),
        (
            "nn.normalization._canonicalize_axes(x.ndim, -1)",
            "nnm.positive_axes(x.ndim, -1)",
        ),
        ("nn.linear._conv_dimension_numbers(s)", "nnx.nn.linear._conv_dimension_numbers(s)"),
        ("nn.FrozenDict({})", "flax.core.FrozenDict({})"),
        ("lambda x: nn.gelu(nn.tanh(x))", "lambda x: nnx.gelu(nnx.tanh(x))"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize("name", functions.SAME_IN_NNX)
def test_a_renamed_function_is_the_same_object_in_nnx(name: str) -> None:
    assert getattr(linen, name, linen.pooling.min_pool) is getattr(nnx, name)


PARTS = ("linear", "module", "attention", "spmd", "normalization", "summary")


@pytest.mark.parametrize("name", functions.TYPES)
def test_a_type_is_flax_typings(name: str) -> None:
    homes = [getattr(linen, part) for part in PARTS]
    values = [getattr(home, name) for home in homes if hasattr(home, name)]
    assert values
    assert all(value == getattr(flax.typing, name) for value in values)


def plain(function: Callable[..., object]) -> str:
    """The code of a function without its signature's types, its documentation and its indentation."""
    node = ast.parse(inspect.getsource(function)).body[0]
    assert isinstance(node, ast.FunctionDef)
    body = node.body[bool(ast.get_docstring(node)) :]
    names = ", ".join(one.arg for one in node.args.args)
    return "\n".join([names, *map(ast.unparse, body)]).replace("tp.", "")


@pytest.mark.parametrize(("theirs", "ours"), functions.SAME_IN_PARTS.items())
def test_a_private_helper_is_the_same_in_nnx(theirs: str, ours: str) -> None:
    assert ours.startswith("nnx.nn.linear.")
    before = getattr(linen.linear, theirs.rpartition(".")[2])
    assert plain(before) == plain(getattr(nnx.nn.linear, ours.rpartition(".")[2]))


def helper(symbol: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    ours = functions.NORM_HELPERS[f"flax.linen.{symbol}"].removeprefix("nnm.")
    return getattr(linen.normalization, symbol), getattr(nnm, ours)


@pytest.mark.parametrize("symbol", functions.NORM_HELPERS)
def test_a_norm_helper_has_linens_signature(symbol: str) -> None:
    first, second = (
        inspect.signature(one).parameters.values() for one in helper(symbol.rpartition(".")[2])
    )
    assert [(one.name, one.default, one.kind) for one in first] == [
        (one.name, one.default, one.kind) for one in second
    ]


NORM_CALLS = {
    "axes": ("_canonicalize_axes", (3, (-1, 0, 2))),
    "one axis": ("_canonicalize_axes", (3, -1)),
    "squares": ("_abs_sq", (X,)),
    "complex squares": ("_abs_sq", (X + 2j,)),
    "unit length": ("_l2_normalize", (X, -1)),
    "statistics": ("_compute_stats", (X, (0,), None)),
    "in half": ("_compute_stats", (X.astype(jnp.bfloat16), -1, None)),
    "half kept": (
        "_compute_stats",
        (X.astype(jnp.bfloat16), -1, None, None, None, True, True, None, False),
    ),
    "slow, masked": ("_compute_stats", (X, (0,), None, None, None, True, False, X > 0)),
    "without a mean": ("_compute_stats", (X, (0,), jnp.float16, None, None, False)),
}


@pytest.mark.parametrize(("symbol", "arguments"), NORM_CALLS.values(), ids=NORM_CALLS)
def test_a_norm_helper_computes_linens_program(symbol: str, arguments: tuple[Any, ...]) -> None:
    theirs, ours = helper(symbol)
    if symbol == "_canonicalize_axes":
        assert theirs(*arguments) == ours(*arguments)
        return
    array, *rest = arguments
    assert str(jax.make_jaxpr(lambda x: theirs(x, *rest))(array)) == str(
        jax.make_jaxpr(lambda x: ours(x, *rest))(array)
    )
