"""Builtins that a converted class needs, in code where their names mean something else."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
from typing import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

ABOVE


class Model(nn.Module):
    widths: Sequence[int] = (3, 4)

    def setup(self):
        self.layers = [nn.Dense(width) for width in self.widths]
        self.norms = [nn.LayerNorm() for width in self.widths]

INSIDE

    def __call__(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = norm(layer(x))
        return x


def main():
    x = jnp.sin(jnp.arange(12.0)).reshape(2, 6)
    variables = Model().init(jax.random.key(0), x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, float(leaf.sum()))
    print(Model().apply(jax.tree.map(lambda v: v * 1.1, variables), x).tolist())
"""
METHOD = "    def {}(self, x):\n        return x\n"


def forms(above: str = "", inside: str = "") -> dict[str, str]:
    return printed_alike(SOURCE.replace("ABOVE", above).replace("INSIDE", inside))


COUNTED = """\
    @nn.compact
    def named(self, x):
        for width in self.widths:
            x = nn.Dense(width)(x)
            if width > 3:
                x = nn.LayerNorm()(x)
        return x

    def __call__(self, x):
        return self.named(x)
"""


def counted(above: str) -> dict[str, str]:
    start, end = SOURCE.index("    def setup"), SOURCE.index("\n\ndef main")
    return printed_alike((SOURCE[:start] + COUNTED + SOURCE[end:]).replace("ABOVE", above))


@pytest.mark.parametrize("name", ["enumerate", "setattr"])
def test_a_global_that_hides_a_builtin_that_is_needed_keeps_its_class_lazy(name: str) -> None:
    assert counted(f"def {name}(*args):\n    raise RuntimeError")["m.Model"] == "lazy"


@pytest.mark.parametrize("name", ["input", "flatten", "max"])
def test_a_global_that_hides_none_that_is_needed_is_explicit(name: str) -> None:
    assert counted(f"def {name}(*args):\n    raise RuntimeError")["m.Model"] == "explicit"


@pytest.mark.parametrize("name", ["dict", "len", "sum"])
def test_methods_hide_builtins_in_annotations_alone(name: str) -> None:
    assert forms(inside=METHOD.format(name))["m.Model"] == "explicit"


def test_a_method_that_hides_the_builtin_of_an_annotation_keeps_its_class_lazy() -> None:
    assert forms(inside=METHOD.format("int"))["m.Model"] == "lazy"
