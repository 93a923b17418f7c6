"""Functions and types are those of NNX and flax.typing, or of our own under the same name."""

from __future__ import annotations

import flax.typing
import pytest
from flax import linen, nnx

from nnx_migrate.constructs import functions
from tests.constructs.convert import text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.relu", "nnx.relu"),
        ("nn.softmax(x, axis=-1)", "nnx.softmax(x, axis=-1)"),
        ("nn.normalize(x)", "nnx.standardize(x)"),
        ("nn.max_pool(x, (2, 2))", "nnx.max_pool(x, (2, 2))"),
        ("nn.pooling.min_pool(x, (2, 2))", "nnx.min_pool(x, (2, 2))"),
        ("nn.module.merge_param('d', a, b)", "nnm.merge_param('d', a, b)"),
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
