"""Linen that a file imports and another one reads there: ``models.nn.Dense``."""

from __future__ import annotations

import pytest

from tests.rewrite.running import files_printed_alike

MODELS = """\
import flax.linen as nn
from flax import linen


class Net(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(linen.relu(x))
"""
MAIN = """\
import jax
import jax.numpy as jnp
{}


def main():
    x = jnp.ones((2, 3))
    for model in (models.Net(4), {}):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables), model.apply(variables, x))
"""


@pytest.mark.parametrize(
    ("imports", "layer"),
    [
        ("import models", "models.nn.Dense(2)"),
        ("import models", "models.linen.Dense(2)"),
        ("import models as M\nimport models", "M.nn.Sequential([M.nn.Dense(2)])"),
        ("import models\nfrom models import nn", "nn.Dense(2)"),
    ],
)
def test_the_import_stays_for_who_reads_it(imports: str, layer: str) -> None:
    files = {"models.py": MODELS, "train.py": MAIN.format(imports, layer)}
    assert files_printed_alike(files)["models.Net"] == "explicit"
