"""Fields whose names or annotations look like something else: ``modules: dict``, ``cell: type[nn.Module]``."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

MAIN = """

def main():
    x = jnp.ones((2, 3))
    for model in ({models}):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables), model.apply(variables, x))
"""
HEAD = """\
from typing import Callable, Type

import flax.linen as nn
import jax
import jax.numpy as jnp


class Part(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


"""
PICK = """\
class Pick(nn.Module):
    modules: dict

    def __call__(self, x):
        return sum(self.modules[name](x) for name in self.modules)
"""


def test_a_field_called_modules_imports_nothing() -> None:
    source = HEAD + PICK + MAIN.format(models='Pick({"a": Part(2), "b": Part(2)}), Part(3)')
    assert printed_alike(source)["m.Part"] == "explicit"


@pytest.mark.parametrize(
    "annotation", ["type[nn.Module]", "Type[nn.Module]", "Callable[..., nn.Module]"]
)
def test_a_field_of_a_class_is_called_as_one(annotation: str) -> None:
    model = f"class Model(nn.Module):\n    part: {annotation} = Part\n\n"
    setup = "    def setup(self):\n        self.first = self.part(5)\n\n"
    call = "    def __call__(self, x):\n        return self.first(x)\n"
    source = HEAD + model + setup + call + MAIN.format(models="Model(), Model(part=nn.Dense)")
    assert printed_alike(source) == {"m.Part": "explicit", "m.Model": "explicit"}
