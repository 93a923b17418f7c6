"""Lambdas that build one submodule, given as values of fields."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from nnx_migrate.model import Outcome
from tests.rewrite.classes.support import HEADER, loaded
from tests.rewrite.projects import only, rewrite

BLOCK = """class Mixer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Block(nn.Module):
    make: Callable{default}

    @nn.compact
    def __call__(self, x):
        x = {call}(nn.LayerNorm()(x))
        return nn.Dense(3)(x)


"""
MODEL = """class Model(nn.Module):
    width: int = 5

    @nn.compact
    def __call__(self, x):
{body}
"""


def project(body: str, call: str = "self.make()", default: str = "") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return BLOCK.format(call=call, default=default) + MODEL.format(body=lines)


CLASS = project("return Block(make=lambda: Mixer(self.width))(x)")
WITHOUT_FIELDS = project("return Block(lambda: nn.LayerNorm())(x)")
KEYWORDS = project(
    "return Block(make=lambda **kw: nn.Dense(4, **kw))(x)", "self.make(use_bias=False)"
)
LOOP = project("for width in (4, 6):\n    x = Block(make=lambda: Mixer(width=width))(x)\nreturn x")
NAMED_FIRST = project("make = lambda: Mixer(self.width)\nblock = Block(make)\nreturn block(x)")
NESTED = project("return Block(make=partial(Block, make=lambda: Mixer(self.width)))(x)")
DEFAULT = project("return Block()(x)", default=" = lambda: nn.Dense(4)")


def rewritten(source: str) -> str:
    result = rewrite({"m.py": HEADER + source})
    assert [one.outcome for one in result.classes] == [Outcome.REWRITTEN] * len(result.classes), [
        one.reason for one in result.classes
    ]
    return only(result) or ""


@pytest.mark.parametrize(
    "source", [CLASS, WITHOUT_FIELDS, KEYWORDS, LOOP, NAMED_FIRST, NESTED, DEFAULT]
)
def test_parameters_and_outputs_are_linens(source: str) -> None:
    x = jax.random.normal(jax.random.key(1), (2, 4))
    with loaded(source, "lambdas_before") as before, loaded(rewritten(source), "lambdas") as after:
        variables = before.Model().init(jax.random.key(0), x)
        expected = before.Model().apply(variables, x)
        made = nnm.build(after.Model, in_features=4, rngs=jax.random.key(0))
        found = made(x)
    given: dict[str, Any] = nnm.variables_of(made)
    assert jax.tree.structure(given) == jax.tree.structure(dict(variables))
    for one, other in zip(jax.tree.leaves(given), jax.tree.leaves(variables), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found, expected)


def test_a_lambda_becomes_the_partial_it_stands_for() -> None:
    text = rewritten(CLASS)
    assert "make=partial(Mixer, self.width), in_features=in_features" in text
    assert "lambda" not in text


def test_partial_is_imported_where_it_is_not() -> None:
    source = HEADER.replace("from functools import partial\n", "") + CLASS
    text = only(rewrite({"m.py": source})) or ""
    assert "import functools" in text.splitlines()
    assert "make=functools.partial(Mixer, self.width), in_features=in_features" in text


def test_one_that_gives_no_fields_becomes_the_class() -> None:
    assert "Block(nnm.factory.LayerNorm, in_features=in_features" in rewritten(WITHOUT_FIELDS)


REFUSED = {
    "a loop rebinds what it reads before it is used": (
        "blocks = []\nfor width in (4, 6):\n"
        "    blocks.append(Block(make=lambda: Mixer(width)))\n"
        "for block in blocks:\n    x = block(x)\nreturn x"
    ),
    "a local changes before it is used": (
        "width = 4\nblock = Block(make=lambda: Mixer(width))\nwidth = 6\nreturn block(x) + width"
    ),
    "it names the submodule": "return Block(make=lambda: Mixer(self.width, name='mix'))(x)",
    "it has parameters": "return Block(make=lambda width=3: Mixer(width))(x)",
    "it builds two submodules": "return Block(make=lambda: nn.Sequential([nn.Dense(3)]))(x)",
    "it calls what it builds": "return Block(make=lambda: nn.Dense(3)(x))(x)",
    "its arguments change something": (
        "widths = [3, 4]\nreturn Block(make=lambda: Mixer(widths.pop()))(x)"
    ),
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_is_no_partial_is_refused(body: str) -> None:
    result = rewrite({"m.py": HEADER + project(body)})
    outcomes = {one.name.rpartition(".")[2]: one.outcome for one in result.classes}
    assert outcomes["Model"] is Outcome.REFUSED
