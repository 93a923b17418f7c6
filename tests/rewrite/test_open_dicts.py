"""Dicts of which the text does not say every entry."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

MAIN = """

def main():
    x = jnp.ones((2, 4))
    variables = Net().init(jax.random.key(0), x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, leaf.sum())
    print(Net().apply(variables, x))
"""
IMPORTS = "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"
SOURCE = (
    IMPORTS
    + """\
class Net(nn.Module):
    widths: tuple = (("a", 3), ("b", 2))

    @nn.compact
    def __call__(self, x):
BODY
        return x
"""
    + MAIN
)


@pytest.mark.parametrize(
    "body",
    [
        "for k, w in dict(self.widths).items():\n    x = nn.Dense(w, name=k)(x)",
        "for w in dict(self.widths).values():\n    x = nn.Dense(w)(x)",
        "x = nn.Dense(dict(self.widths)['b'])(nn.Dense(dict(self.widths).get('a'))(x))",
        "for k, w in {**dict(self.widths), 'c': 5}.items():\n    x = nn.Dense(w)(x)",
    ],
)
def test_every_entry_counts(body: str) -> None:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    printed_alike(SOURCE.replace("BODY", lines))
