"""BatchApply."""

from __future__ import annotations

import numpy as np
import pytest

from tests.linen.layers.comparison import assert_same_error, assert_same_text, evaluate, floats


@pytest.mark.parametrize(
    "call",
    [
        "BatchApply(lambda a, b: a @ b)(x, x[0, 0])",
        "BatchApply(lambda a, b: {'y': a + b, 'z': (a,)}, num_dims=3)(x, b=2.0)",
        "BatchApply(lambda tree: tree['a'].sum(-1))({'a': x, 'b': 1.0})",
    ],
)
def test_merging_is_the_same_program(call):
    assert_same_text(*evaluate(f"lambda x: batch_apply.{call}"), floats(2, 3, 4))


def test_arrays_of_numpy_are_merged():
    x = np.ones((2, 3, 4))
    linen, lazy = evaluate("lambda x: batch_apply.BatchApply(lambda a: a.sum(-1))(x)")
    assert linen(x).tobytes() == lazy(x).tobytes()


def test_something_must_have_the_axes():
    assert_same_error("batch_apply.BatchApply(lambda x: x)(jnp.ones(3))")


@pytest.mark.parametrize(
    "expression",
    [
        "batch_apply.ndim_at_least(1.0, 1)",
        "batch_apply.ndim_at_least(np.ones((2, 3)), 2)",
        "batch_apply.merge_leading_dims(np.ones((2, 3, 4)), 2).shape",
        "batch_apply.split_leading_dim(np.ones((6, 4)), (2, 3)).shape",
        "batch_apply.arbitrary_mergeable_leaf(2, (1.0,), {'a': 2.0})",
    ],
)
def test_helpers(expression):
    linen, lazy = evaluate(expression)
    assert linen == lazy
