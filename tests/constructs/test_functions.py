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
from tests.rewrite.running import printed_alike

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
        ("nn.linear._normalize_axes(a, x.ndim)", "nnm.sorted_axes(a, x.ndim)"),
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
    ours = functions.OWN_HELPERS[f"flax.linen.{symbol}"].removeprefix("nnm.")
    home = linen.linear if hasattr(linen.linear, symbol) else linen.normalization
    return getattr(home, symbol), getattr(nnm, ours)


@pytest.mark.parametrize("symbol", functions.OWN_HELPERS)
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
    "axes in order": ("_normalize_axes", ((-1, 0, 1), 3)),
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
    if symbol in ("_canonicalize_axes", "_normalize_axes"):
        assert theirs(*arguments) == ours(*arguments)
        return
    array, *rest = arguments
    assert str(jax.make_jaxpr(lambda x: theirs(x, *rest))(array)) == str(
        jax.make_jaxpr(lambda x: ours(x, *rest))(array)
    )


AXES = """
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.linen.linear import _canonicalize_tuple, _normalize_axes


class Model(nn.Module):
    features: Any = 3
    axis: Any = -1

    @nn.compact
    def __call__(self, x):
        features, axis = _canonicalize_tuple(self.features), _canonicalize_tuple(self.axis)
        x = jnp.asarray(x, jnp.float32)
        axis = _normalize_axes(axis, x.ndim)
        shape = tuple(x.shape[one] for one in axis) + features
        kernel = self.param("kernel", nn.initializers.lecun_normal(), shape)
        return jax.lax.dot_general(x, kernel, ((axis, tuple(range(len(axis)))), ((), ())))


class Norm(nn.Module):
    @nn.compact
    def __call__(self, x):
        axes = nn.normalization._canonicalize_axes(x.ndim, -1)
        shape = [x.shape[one] for one in axes]
        scale = self.param("scale", nn.initializers.ones, shape)
        return scale.reshape(1, 1, -1) * x / nn.normalization._abs_sq(x).sum(axes, keepdims=True)


def main():
    x = jnp.linspace(-1, 1, 24).reshape(2, 3, 4)
    for model in (Model(), Model((2, 5), (-1, -2)), Norm()):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables), float(model.apply(variables, x).sum()).hex())


if __name__ == "__main__":
    main()
"""


def test_layers_written_after_linens_are_explicit() -> None:
    assert printed_alike(AXES) == {"m.Model": "explicit", "m.Norm": "explicit"}
