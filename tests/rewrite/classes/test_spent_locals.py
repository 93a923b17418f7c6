"""Local names that only constructors read: ``__init__`` has them now, the call does without."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.projects import rewrite_in_form, texts
from tests.rewrite.running import printed_alike

PROGRAM = """\
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn


class Net(nn.Module):
    width: int = 4
    kind: str = "relu"

    @nn.compact
    def __call__(self, x):
{body}


def main():
    x = jnp.arange(8.0).reshape(2, 4)
    for kind in ("relu", "tanh", "other"):
        try:
            variables = Net(kind=kind).init({{"params": jax.random.key(0)}}, x)
        except ValueError as error:
            print(repr(error))
            continue
        print(jax.tree.map(jnp.shape, variables), Net(kind=kind).apply(variables, x))
"""


def methods(body: str) -> tuple[str, str]:
    """What ``__init__`` and the call become, in a program that prints the same as before."""
    source = PROGRAM.format(body=textwrap.indent(body, " " * 8))
    assert printed_alike(source) == {"m.Net": "explicit"}
    text = texts(rewrite_in_form({"m.py": source}, "auto"), {"m.py": source})["m.py"]
    init, call = text[: text.index("\n\n\ndef main")].split("    def __call__(self, x):\n")
    return init, textwrap.dedent(call)


MOVED = {
    "a size": (
        "hidden = 4 * self.width\nreturn nn.Dense(hidden)(x)",
        "return self.Dense_0(x)",
    ),
    "an initializer": (
        "init = nn.initializers.normal(0.1)\nreturn nn.Dense(3, kernel_init=init)(x)",
        "return self.Dense_0(x)",
    ),
    "one that another reads": (
        "size = x.shape[-1]\nhalf = size // 2\nreturn nn.Dense(half)(x)",
        "return self.Dense_0(x)",
    ),
    "several at once": (
        "one, two = 3, 4\nx = nn.Dense(one)(x)\nreturn nn.Dense(two)(x)",
        "x = self.Dense_0(x)\nreturn self.Dense_1(x)",
    ),
    "a partial": (
        "dense = partial(nn.Dense, use_bias=False)\nreturn dense(3)(dense(4)(x))",
        "return self.Dense_0(self.Dense_1(x))",
    ),
    "both arms of a condition": (
        "if self.width > 3:\n    size = 3\nelse:\n    size = 5\nreturn nn.Dense(size)(x)",
        "return self.Dense_0(x)",
    ),
    "with what is raised": (
        (
            "if self.kind == 'relu':\n    size = 3\nelif self.kind == 'tanh':\n    size = 5\n"
            "else:\n    raise ValueError(self.kind)\nreturn nn.Dense(size)(x)"
        ),
        "return self.Dense_0(x)",
    ),
    "what a condition reads": (
        "small = self.width < 3\nif small:\n    size = 3\nelse:\n    size = 5\nreturn nn.Dense(size)(x)",
        "return self.Dense_0(x)",
    ),
    "in a loop": (
        "for i in range(2):\n    size = 3 + i\n    x = nn.Dense(size)(x)\nreturn x",
        'for i in range(2):\n    x = getattr(self, f"Dense_{i}")(x)\nreturn x',
    ),
    "a number that grows": (
        "size = 2\nfor i in range(2):\n    x = nn.Dense(size)(x)\n    size *= 2\nreturn x",
        'for i in range(2):\n    x = getattr(self, f"Dense_{i}")(x)\nreturn x',
    ),
}


@pytest.mark.parametrize(("body", "wanted"), MOVED.values(), ids=MOVED)
def test_what_only_constructors_read_is_not_computed_by_the_call(body: str, wanted: str) -> None:
    _, call = methods(body)
    assert call == wanted


STAYS = {
    "the call reads it, too": "size = 3\nreturn nn.Dense(size)(x) * size",
    "a function reads it": "size = 3\nrun = lambda y: y * size\nreturn run(nn.Dense(size)(x))",
    "it does more than to compute": "size = [3].pop()\nreturn nn.Dense(size)(x)",
    "it is the name of the submodule": (
        "for i in range(2):\n    name = f'layer_{i}'\n    x = nn.Dense(4, name=name)(x)\nreturn x"
    ),
    "nothing read it": "size = 3\nreturn nn.Dense(3)(x)",
    "a list may be another's": (
        "size = [self.width]\nsize += [4]\nreturn nn.DenseGeneral(tuple(size))(x)"
    ),
    "it is all that a block does": (
        "with jax.named_scope('size'):\n    size = 3\nreturn nn.Dense(size)(x)"
    ),
    "the condition does more": (
        "if [True].pop():\n    size = 3\nelse:\n    size = 4\nreturn nn.Dense(size)(x)"
    ),
    "it draws from one state of all": (
        "size = int(np.random.rand()) + 3\nreturn nn.Dense(size)(x)"
    ),
    "names are looked at": "size = 3\nknown = len(locals())\nreturn nn.Dense(size)(x) * (known > 1)",
}


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS)
def test_other_names_stay_in_the_call(body: str) -> None:
    _, call = methods(body)
    assert "size = " in call or "name = " in call


def test_comments_go_with_their_statement() -> None:
    init, call = methods(
        "# before\nx = x + 1  # one\n\n# the size\nsize = 3  # three\n# kinds\n"
        "if size > 2:\n    # big\n    bias = True\nelse:\n    bias = False  # small\n"
        "# then\nreturn nn.Dense(size, use_bias=bias)(x)  # call"
    )
    assert call == "# before\nx = x + 1  # one\n\n# then\nreturn self.Dense_0(x)  # call"
    assert [
        one for one in ("# the size", "# three", "# kinds", "# big", "# small") if one not in init
    ] == []


FLAGS = """\
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn


class Block(nn.Module):
    norm: Any

    @nn.compact
    def __call__(self, x):
        return self.norm()(nn.Dense(3)(x))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        off = not train
        rate = 0.5
        norm = partial(nn.BatchNorm, use_running_average=off)
        x = nn.BatchNorm(use_running_average=off, momentum=rate)(norm()(nn.Dense(3)(x)))
        return nn.Dropout(rate, deterministic=off)(Block(norm)(x))


def main():
    x = jnp.arange(8.0).reshape(2, 4)
    rngs = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    variables = Net().init(rngs, x)
    for train in (False, True):
        print(Net().apply(variables, x, train, rngs=rngs, mutable=["batch_stats"]))
"""


def test_a_flag_that_moves_to_where_a_layer_is_called_stays_bound_there() -> None:
    assert printed_alike(FLAGS) == {"m.Block": "explicit", "m.Net": "explicit"}
    text = texts(rewrite_in_form({"m.py": FLAGS}, "auto"), {"m.py": FLAGS})["m.py"]
    call = text[text.index("    def __call__(self, x, train=False):") : text.index("def main")]
    assert "        off = not train\n" in call
    assert "partial" not in call
    assert "rate" not in call
