"""Attributes of submodules whose number in Linen only the running program knows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite.running import in_auto, lazy, same_in_auto

X = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
HEADER = """\
from collections.abc import Callable
from typing import Any

import flax.linen as nn
from functools import partial


class Model(nn.Module):
    layer: Any = partial(nn.Dense, use_bias=False)
    flag: bool = True
    sizes: tuple[int, ...] = (4, 5)

    @nn.compact
    def __call__(self, x):
"""
NAMED = {
    "a field's layers": (
        "x = self.layer(4)(nn.Dense(4)(x))\nreturn self.layer(5)(x)",
        ["self.layer_0(self.dense_0(x))", "self.layer_1(x)"],
    ),
    "in a loop": (
        "for size in self.sizes:\n    x = self.layer(size)(x)\nreturn x",
        ['getattr(self, f"layer_{i}")(x)'],
    ),
    "in a comprehension": (
        "return sum([self.layer(size)(x).sum() for size in self.sizes])",
        ['sum([getattr(self, f"layer_{i}")(x).sum() for i, size in enumerate(self.sizes)])'],
    ),
    "in a comprehension of another index": (
        "return {i: self.layer(size)(x) for i, size in zip('ab', self.sizes)}['b']",
        ["for j, (i, size) in enumerate(zip('ab', self.sizes))"],
    ),
    "in a loop and behind it": (
        "for size in self.sizes:\n    x = self.layer(size)(x)\nreturn self.layer(2)(x)",
        ['getattr(self, f"layer_0_{i}")(x)', "self.layer_1(x)"],
    ),
    "under a condition on a field": (
        "if self.flag:\n    x = self.layer(4)(x)\nreturn nn.Dense(3)(x)",
        ["self.layer_0(x)", "self.dense_0(x)"],
    ),
    "one of two classes": (
        "return (nn.LayerNorm if self.flag else nn.RMSNorm)()(nn.RMSNorm()(x))",
        ["self.layer_0(self.rms_norm_0(x))"],
    ),
    "beside names of the user's": (
        'x = self.layer(4, name="layer_a")(x)\nreturn self.layer(3)(x)',
        ["self.layer_a(x)", "self.layer_0(x)"],
    ),
}


def source(body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return f"{HEADER}{lines}\n\ndef model():\n    return Model()\n"


@pytest.mark.parametrize(("body", "parts"), NAMED.values(), ids=NAMED)
def test_the_attribute_is_named_for_the_code_that_builds_it(body: str, parts: list[str]) -> None:
    text = in_auto(source(body))
    assert "@nnm.named_in_linen(" in text
    assert "LinenNames" not in text
    assert [one for one in parts if one not in text] == []
    same_in_auto(source(body), "model()", X)


COUNTED = {
    "a name of the user's that may be the same": (
        'for i in range(2):\n    x = self.layer(4, name=f"layer_{i}")(x)\nreturn self.layer(3)(x)'
    ),
    "a comprehension that leaves some out": (
        "return [self.layer(4)(x) for size in self.sizes if size > 4][0]"
    ),
    "a loop that ends early": (
        "for size in self.sizes:\n    if size > 4:\n        break\n    x = self.layer(4)(x)\nreturn x"
    ),
}


@pytest.mark.parametrize("body", COUNTED.values(), ids=COUNTED)
def test_others_are_counted_as_linen_counts(body: str) -> None:
    assert "named_in_linen" not in in_auto(source(body))
    same_in_auto(source(body), "model()", X)


BLOCKS = """\
import flax.linen as nn


class Same(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(x.shape[-1])(x)


class Twice(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2 * x.shape[-1])(x)


class Model(nn.Module):
    block: type = Same

    @nn.compact
    def __call__(self, x):
        x = self.block()(x)
        {more}return nn.Dense(3)(x)


MODELS = (Model(), Model(Twice))
"""


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ("", ["out_features_of_block"]),
        ("x = self.block()(x)\n        ", ["out_features_of_block_0", "out_features_of_block_1"]),
    ],
)
def test_a_width_that_only_the_class_knows_is_named_for_it(more: str, names: list[str]) -> None:
    text = in_auto(BLOCKS.format(more=more))
    assert [one for one in names if f"{one} = nnm.out_features(" not in text] == []
    for index in range(2):
        same_in_auto(BLOCKS.format(more=more), f"MODELS[{index}]", X)


@pytest.mark.parametrize(
    "body",
    [
        'proj = partial(self.layer, name="proj")\nreturn self.layer(4)(proj(5)(x))',
        'proj = partial(nn.Dense, name="proj")\nreturn proj(5)(x)',
    ],
)
def test_a_partial_with_a_name_keeps_its_class_lazy(body: str) -> None:
    assert "class Model(nn.Module)" in in_auto(source(body))
    same_in_auto(source(body), "model()", X)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            "first = nn.Dense(4)\nfor size in self.sizes:\n    x = first(x)\nreturn self.layer(3)(x)",
            id="numbered at run time",
        ),
        pytest.param(
            "first = nn.Dense(4)\nparts = [nn.Dense(4) for _ in self.sizes]\nfor part in parts:\n"
            "    x = part(first(x))\nfor kind in (nn.Dense, self.layer):\n    x = kind(3)(x)\nreturn x",
            id="in a loop over what a comprehension builds",
        ),
        pytest.param(
            "first = self.layer(4)\nfor size in self.sizes:\n    x = first(x)\nreturn nn.Dense(3)(x)",
            id="of a class that only the running program knows",
        ),
    ],
)
def test_what_a_loop_without_a_round_never_calls_is_counted_by_linen(body: str) -> None:
    assert "class Model(nn.Module)" in in_auto(source(body))
    for sizes in ("()", "(4, 4)"):
        same_in_auto(source(body).replace("Model()", f"Model(sizes={sizes})"), "model()", X)


WAITING = """\
import flax.linen as nn
from functools import partial


class Wide(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Model(nn.Module):
    body: type = Wide
    rounds: int = 2

    @nn.compact
    def __call__(self, x):
        {text}


MODELS = (Model(), Model(partial(nn.Dense, 5)), Model(partial(Wide, 2)))
"""


@pytest.mark.parametrize("number", range(3))
def test_what_waits_for_a_size_keeps_the_number_of_its_turn(number: int) -> None:
    text = WAITING.format(text="return nn.Dense(1)(self.body()(nn.Dense(4)(x)))")
    assert '@nnm.order_in_linen("dense_0", "body_0", "dense_1")' in in_auto(text)
    same_in_auto(text, f"MODELS[{number}]", X)


def test_in_a_loop_it_is_lazy() -> None:
    body = "for _ in range(self.rounds):\n            x = nn.Dense(4)(self.body()(x))\n        return x"
    text = WAITING.format(text=body)
    reason = "what is built waits for a size, and Linen numbers what is built in a loop"
    assert lazy(text, "Model") == reason
    same_in_auto(text, "MODELS[1]", X)
