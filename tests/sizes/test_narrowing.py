"""What tests and assertions say about the rank of an array."""

from __future__ import annotations

import pytest

from tests.sizes.inference import arguments, compact, dims, in_features, problems, sizes_of

BATCHED = """
    if {}:
        x = jnp.expand_dims(x, axis=0)
    batch, length, width = x.shape
    return self.param("w", nn.initializers.ones, (length, width)) + x
"""


@pytest.mark.parametrize(
    "test", ["x.ndim == 2", "len(x.shape) == 2", "jnp.ndim(x) == 2", "not x.ndim != 2"]
)
def test_an_array_that_may_get_a_batch_axis_keeps_its_last_sizes(test: str) -> None:
    found = sizes_of(compact(BATCHED.format(test)))
    assert problems(found) == []
    assert arguments(found) == ["x_shape"]
    assert {"x_shape[-2]", "x_shape[-1]"} < dims(found)


def test_without_a_rank_only_the_last_size_is_kept() -> None:
    found = sizes_of(
        compact(
            BATCHED.format(
                "self.batched",
            ),
            fields="batched: bool",
        )
    )
    assert "x_shape[-2]" not in dims(found)


KNOWN = """
    {}
    x = x.reshape(x.shape[0], -1)
    return nn.Dense(3)(x)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "assert x.ndim == 3",
        "assert x.ndim == 3, x.shape",
        "if x.ndim != 3: raise ValueError",
        "if x.ndim == 3: pass\n    else: raise ValueError",
        "if x.ndim != 3: return x",
    ],
)
def test_what_an_assertion_says_holds_from_there_on(statement: str) -> None:
    found = sizes_of(compact(KNOWN.format(statement)))
    sizes = [site.sizes for site in found.sites.values()]
    assert sizes == [{"in_features": "x_shape[-2] * x_shape[-1]"}]


@pytest.mark.parametrize(
    "statement",
    [
        "assert x.ndim >= 3",
        "assert x.ndim == rank",
        "if x.ndim == 3: raise ValueError",
        "assert y.ndim == 3",
        "if x.ndim == 3: pass",
    ],
)
def test_what_does_not_fix_the_rank_leaves_it_open(statement: str) -> None:
    found = sizes_of(compact(KNOWN.format(statement), arguments="x, y, rank"))
    sizes = [site.sizes for site in found.sites.values()]
    assert sizes == [{"in_features": "Dense_0_in_features"}]


CHOICE = """
    single = {}
    {}
    x = jnp.expand_dims(x, 1) if {} else x
    return nn.Dense(3)(x)
"""


@pytest.mark.parametrize(
    ("value", "test"),
    [("x.ndim == 2", "single"), ("x.ndim != 2", "not single"), ("None", "len(x.shape) == 2")],
)
def test_the_branches_of_an_expression_know_the_rank_that_its_test_says(
    value: str, test: str
) -> None:
    found = sizes_of(compact(CHOICE.format(value, "pass", test)))
    assert in_features(found) == ["in_features"]


@pytest.mark.parametrize(
    ("value", "between", "test"),
    [
        ("x.ndim == 2", "x = x[0]", "single"),
        ("x.ndim == 2", "x = mystery(x)", "single"),
        ("x.ndim == 2", "for x in [x, mystery(x)]: pass", "single"),
        ("x.ndim == 2", "single = mystery(x)", "single"),
        ("x.ndim == 2", "pass", "not single"),
        ("x.ndim != 2", "pass", "single"),
        ("y.ndim == 2", "pass", "single"),
        ("x.ndim == 1", "pass", "single"),
        ("x.ndim >= 1", "pass", "single"),
    ],
)
def test_a_test_that_says_nothing_of_the_array_leaves_the_last_size_open(
    value: str, between: str, test: str
) -> None:
    found = sizes_of(compact(CHOICE.format(value, between, test), arguments="x, y"))
    assert in_features(found) == ["Dense_0_in_features"]
