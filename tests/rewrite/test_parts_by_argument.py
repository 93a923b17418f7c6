"""Parts that the first call reaches by the value of an argument: the constructor cannot know it."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    heads: tuple = (1, 2)

    def setup(self):
        self.first = nn.Dense(3)
        self.second = nn.Dense(3)
        self.layers = [nn.Dense(3) for _ in self.heads]

    def __call__(self, x, ARGUMENT):
BODY
        return x


def main():
    x = jnp.ones((2, 3))
    for more in ((), *GIVEN):
        made = Net().init(jax.random.key(0), x, *more)
        print(sorted(jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(made)))
        print(Net().apply(made, x, *more))
"""
LOOP = "for layer in self.layers:\n    x = layer(x)\nx = self.second(self.first(x))"


@pytest.mark.parametrize(
    ("argument", "body", "given"),
    [
        (
            "mode='train'",
            "if mode == 'train':\n    x = self.first(x)\nx = self.second(x)",
            "'eval'",
        ),
        ("depth=2", "x = self.first(x)\nif depth > 1:\n    x = self.second(x)", "1"),
        (
            "feats=()",
            "x = self.first(x)\nif len(feats) > 0:\n    x = self.second(x)",
            "(1, 2)",
        ),
        (
            "others=(1, 2)",
            "for one, layer in zip(others, self.layers):\n    x = one * layer(x)",
            "(3,)",
        ),
        ("which=0", "x = (self.first, self.second)[which](x)", "1"),
    ],
    ids=["text", "number", "length", "zip", "index"],
)
def test_what_only_some_arguments_reach_is_left_to_its_first_call(
    argument: str, body: str, given: str
) -> None:
    text = body if "layers" in body else f"for layer in self.layers:\n    x = layer(x)\n{body}"
    source = SOURCE.replace("ARGUMENT", argument).replace("GIVEN", f"(({given},),)")
    source = source.replace("BODY", "\n".join(" " * 8 + line for line in text.splitlines()))
    assert printed_alike(source) == {"m.Net": "explicit"}


def test_arguments_that_decide_no_part_leave_the_class_explicit() -> None:
    body = LOOP + "\nif mode == 'train':\n    x = x * 2"
    source = SOURCE.replace("ARGUMENT", "mode='train'").replace("GIVEN", "(('eval',),)")
    source = source.replace("BODY", "\n".join(" " * 8 + line for line in body.splitlines()))
    assert printed_alike(source) == {"m.Net": "explicit"}
