"""What local functions of ``setup`` build: a submodule like any other, also in lists and dicts."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

LOCAL = """
class Net(nn.Module):
    share: bool = True

    def setup(self):
        {make}
        {layers}
        self.out = nn.Dense(2)

    def __call__(self, x):
        return self.out(self.layers[{second}](self.layers[{first}](x)))


def main():
    for share in (True, False):
        variables = Net(share).init(jax.random.key(0), jnp.ones((2, 3)))
        print(variables, Net(share).apply(variables, jnp.ones((2, 3))))
"""
MAKES = (
    "make = lambda n=3: nn.Dense(n)",
    "def make(n=3):\n            return nn.Dense(n, use_bias=False)",
)


@pytest.mark.parametrize("make", MAKES, ids=["lambda", "function"])
@pytest.mark.parametrize(
    ("layers", "form"),
    [
        ("self.layers = {'a': make(), 'b': make(3)}", "explicit"),
        ("self.layers = (make(), make(3))", "explicit"),
        ("one = make()\n        self.layers = [one, make(3)]", "explicit"),
        (
            "one = make()\n        self.layers = {'a': one, 'b': one if self.share else make(3)}",
            "lazy",
        ),
        (
            "rest = []\n        for _ in range(2):\n            rest.append(make())\n        self.layers = rest",
            "lazy",
        ),
        ("self.layers = [make() for _ in range(2)]", "lazy"),
    ],
)
def test_what_local_functions_build_is_a_submodule(make: str, layers: str, form: str) -> None:
    text = LINEN + "import jax\nimport jax.numpy as jnp\n" + LOCAL
    first, second = ("'a'", "'b'") if "{'a'" in layers else (0, 1)
    forms = printed_alike(text.format(make=make, layers=layers, first=first, second=second))
    assert forms == {"m.Net": form}
