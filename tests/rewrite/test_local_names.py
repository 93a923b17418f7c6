"""A model and its training in one file, which use the same short names."""

from __future__ import annotations

import pytest

from tests.rewrite.test_forms import auto, said

SCRIPT = """\
import functools
import flax.linen as nn

norm = functools.partial(nn.LayerNorm, epsilon=1e-3)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for i in range(2):
            x = nn.Dense(3)(x)
        {line}
        return x


for i in range(2):
    print(nn.Dense(i))
layer = nn.Dense(4)
norm(x)
"""


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("layer = nn.relu(x); x = layer * x", "explicit"),
        ("x = (lambda norm: norm)(x)", "explicit"),
        ("norm = nn.relu(x)", "explicit"),
        ("x = norm()(x)", "lazy"),
        ("x = (lambda norm=norm: norm)()()(x)", "lazy"),
        ("x = [norm() for norm in (norm,)][0](x)", "lazy"),
    ],
)
def test_a_name_of_its_own_is_not_read_from_the_code_around_a_class(line: str, form: str) -> None:
    assert said(auto({"m.py": SCRIPT.format(line=line)})) == {"m.Net": form}
