"""Loops whose rounds build modules of one class or another."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp

TABLE = {{"one": 0, "two": 1}}


class One(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(x)


class Two(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class Net(nn.Module):
    wide: bool = True

    @nn.compact
    def __call__(self, x):
        {body}
        return nn.Dense(4)(x)


def main():
    variables = jax.jit(Net().init)(jax.random.key(0), jnp.ones((2, 4)))
    for path, value in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), value.shape, value.tobytes().hex())
"""
LAZY = {
    "a tuple": "for kind in (One, Two):\n            x = kind()(x)",
    "a list in a local": (
        "kinds = [One, Two]\n        for kind in kinds:\n            x = kind()(x)"
    ),
    "layers": "for kind in (nn.LayerNorm, nn.RMSNorm):\n            x = kind()(x)",
    "with names": (
        "for i, kind in enumerate((One, Two)):\n            x = kind(name=f'part_{i}')(x)"
    ),
}
EXPLICIT = {
    "by an index": "for i in range(2):\n            x = (One, Two)[i]()(x)",
    "by a key": "for i in TABLE:\n            x = {{'one': One, 'two': Two}}[i]()(x)",
    "by a field": "x = (One if self.wide else Two)()(x)",
    "one class": "for kind in (One, One):\n            x = kind()(x)",
}


def _form(body: str) -> str:
    return printed_alike(SOURCE.replace("{body}", body).replace("{{", "{").replace("}}", "}"))[
        "m.Net"
    ]


@pytest.mark.parametrize("body", LAZY.values(), ids=LAZY)
def test_one_call_that_builds_several_classes_keeps_its_class_lazy(body: str) -> None:
    assert _form(body) == "lazy"


@pytest.mark.parametrize("body", EXPLICIT.values(), ids=EXPLICIT)
def test_classes_that_an_expression_chooses_are_built_as_chosen(body: str) -> None:
    assert _form(body) == "explicit"
