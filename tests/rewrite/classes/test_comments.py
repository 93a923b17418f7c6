"""No comment of a class is lost: those of what is left out stand where the rest of it is built."""

from __future__ import annotations

import textwrap

import pytest

from benchmarks.comments.keeping import comments
from tests.rewrite.projects import explicit_source

HEAD = "from typing import Callable\nimport flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"


def rewritten(body: str) -> str:
    result = explicit_source(HEAD + textwrap.dedent(body))
    assert [one.outcome.value for one in result.classes] == ["rewritten"] * len(result.classes)
    return result.code


def test_comments_of_the_arguments_of_variables_stand_above_their_values() -> None:
    code = rewritten(
        """\
        class Model(nn.Module):
            @nn.compact
            def __call__(self, x):
                mean = self.variable(  # running
                    "stats",  # the collection
                    "mean",  # the name
                    jnp.zeros,  # how it begins
                    (4,),  # its shape
                )
                return x + mean.value
        """
    )
    assert (
        textwrap.indent(
            """\
self.mean = nnm.variable("stats", jnp.zeros(
    # running
    # the collection
    # the name
    # how it begins
    (4,),  # its shape
))
""",
            " " * 8,
        )
        in code
    )


PARAM = """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x * self.param(  # 1
            "scale",  # 2
            nn.initializers.ones,  # 3
            (4,),  # 4
        )
"""
LAMBDA = """\
class Model(nn.Module):
    def setup(self):
        self.mean = self.variable("stats", "mean",  # 1
            lambda s: jnp.zeros(s),  # 2
            (4,))  # 3

    def __call__(self, x):
        return x + self.mean.value
"""
STREAM = """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        noise = jax.random.normal(
            self.make_rng(  # 1
                "noise",  # 2
            ),  # 3
            x.shape,
        )
        return nn.Dense(4)(x) + noise
"""
LIST = """\
class Model(nn.Module):
    def setup(self):
        self.layers = [  # 1
            nn.Dense(  # 2
                4,  # 3
            )  # 4
            for _ in range(2)  # 5
        ]  # 6

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
NAMED = """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        layers = [
            nn.Dense(  # 1
                4,  # 2
                name="first",  # 3
            ),  # 4
        ]
        for layer in layers:
            x = layer(  # 5
                x
            )
        return nn.LayerNorm(  # 6
        )(x)
"""
NAMES = """\
class Model(nn.Module):
    act: Callable = (  # 1
        nn.relu
    )
    wide: bool = (  # 3
        True
    )

    @nn.compact
    def __call__(self, x):
        x = self.act(nn.Dense(4)(x))
        return (  # 2
            x
        )
"""


@pytest.mark.parametrize("body", [PARAM, LAMBDA, STREAM, LIST, NAMED, NAMES])
def test_every_comment_is_there_once(body: str) -> None:
    code = rewritten(body)
    assert comments(code) == comments(body)


def test_comments_above_arguments_keep_their_order() -> None:
    code = rewritten(PARAM)
    assert [line.strip() for line in code.split("\n") if "#" in line][:3] == ["# 1", "# 2", "# 3"]
