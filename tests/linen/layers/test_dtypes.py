"""Dtypes that layers compute in."""

from __future__ import annotations

import pytest

from tests.linen.layers.comparison import assert_same_error, evaluate


@pytest.mark.parametrize(
    "arguments",
    [
        "1.0",
        "1, 2.5, None",
        "jnp.ones(2, jnp.int32)",
        "jnp.ones(2, jnp.int32), inexact=False",
        "jnp.ones(2, jnp.bfloat16), 1.0",
        "jnp.ones(2, jnp.bfloat16), jnp.ones(2)",
        "jnp.ones(2), dtype=jnp.float16",
        "jnp.ones(2, jnp.complex64), jnp.ones(2)",
        "None, jnp.ones(2), dtype=jnp.int8, inexact=False",
    ],
)
def test_the_same_dtype(arguments):
    linen, lazy = evaluate(f"dtypes.canonicalize_dtype({arguments})")
    assert linen == lazy
    linen, lazy = evaluate(f"dtypes.promote_dtype({arguments})")
    assert [getattr(x, "dtype", None) for x in linen] == [getattr(x, "dtype", None) for x in lazy]


@pytest.mark.parametrize("name", ["canonicalize_dtype", "promote_dtype"])
def test_an_integer_dtype_is_refused(name):
    assert_same_error(f"dtypes.{name}(jnp.ones(2), dtype=jnp.int32)")
