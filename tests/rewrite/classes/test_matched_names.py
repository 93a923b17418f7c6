"""Names that ``case`` patterns bind decide what is built, as assignments do."""

from __future__ import annotations

import jax
import pytest

from tests.rewrite.running import compare

SOURCE = """\
import flax.linen as nn
import jax.numpy as jnp


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        n = 3
        match {subject}:
            case {pattern}:
                pass
        return nn.Dense(n)(x) + nn.Dense(1)(x)
"""


@pytest.mark.parametrize(
    ("subject", "pattern"),
    [("x.shape", "(_, n)"), ("x.shape", "(n, *_)"), ("x.shape", "(3, n)")],
)
def test_a_name_that_a_pattern_binds_has_the_value_it_matched(subject: str, pattern: str) -> None:
    source = SOURCE.format(subject=subject, pattern=pattern)
    x = jax.random.normal(jax.random.key(0), (2, 6))
    report = compare(source, "Model()", {"x_shape": (2, 6)}, (x,))
    assert report.verdict in ("identical", "equal_by_rules"), report
