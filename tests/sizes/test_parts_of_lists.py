"""Lists of submodules that the call reads by parts."""

from __future__ import annotations

import pytest

from nnx_migrate.sizes import ClassSizes
from tests.sizes.inference import LAZY, in_features, sizes_of

MODEL = """
class Model(nn.Module):
    n: int = 4

    def setup(self):
        self.ls = [nn.Dense(3) for _ in range(self.n)]

    def __call__(self, x):
        {}
        return x
"""
LOOP = "for layer in {}:\n            x = layer(x)"
# Each layer is given the same: only whether all are called decides.
ALIKE = MODEL.replace("{}\n        return x", "{}\n        return y")


def analysis(body: str) -> ClassSizes:
    return sizes_of(MODEL.format(body))


@pytest.mark.parametrize("part", ["self.ls[1::2]", "self.ls[1:]", "self.ls[:2]", "self.ls[:-1]"])
def test_a_part_of_a_list_is_left_to_first_calls(part: str) -> None:
    found = analysis(LOOP.format(part))
    assert in_features(found) == [LAZY]
    assert not found.new_arguments


@pytest.mark.parametrize(
    "body",
    [
        LOOP.format("self.ls"),
        LOOP.format("self.ls[:]"),
        LOOP.format("self.ls[::-1]"),
        "x = self.ls[0](x)\n        " + LOOP.format("self.ls[1:]"),
        LOOP.format("self.ls[:-1]") + "\n        x = self.ls[-1](x)",
        "y = self.ls[-1](x)\n        " + LOOP.format("self.ls[:-1]") + "\n        x = x + y",
        "for i, layer in enumerate(self.ls[:-1]):\n            x = nn.relu(layer(x * i))\n        x = self.ls[-1](x)",
        "ys = [x for _ in self.ls[:-1]]\n        " + LOOP.format("self.ls"),
        "for i in range(self.n):\n            x = self.ls[i](x)",
    ],
)
def test_a_list_that_is_read_whole_is_not(body: str) -> None:
    found = sizes_of(ALIKE.format(body.replace("x = ", "y = ")))
    assert found.problems == ()
    assert in_features(found) == ["in_features"]


FIRST, LAST = "x = self.ls[0](x)", "x = self.ls[-1](x)"


@pytest.mark.parametrize(
    "body",
    [
        FIRST
        + "\n        for layer in self.ls[1:]:\n            if self.n > 2:\n                x = layer(x)",
        FIRST
        + "\n        if self.n > 2:\n            for layer in self.ls[1:]:\n                x = layer(x)",
        "if self.n > 2:\n            x = self.ls[0](x)\n        " + LOOP.format("self.ls[1:]"),
        LOOP.format("self.ls[:-1]")
        + "\n        if x.ndim > 2:\n            return x\n        "
        + LAST,
        LOOP.format("self.ls[:-1]")
        + "\n            if x.ndim > 2:\n                break\n        "
        + LAST,
        "for layer in self.ls[:-1]:\n            if x.ndim > 2:\n                continue\n"
        "            x = layer(x)\n        " + LAST,
        "for layer in self.ls[:-1]:\n            x = layer(x) if self.n > 2 else x\n        "
        + LAST,
        "for layer in self.ls[:-1]:\n            x = layer.features * x\n        " + LAST,
        LOOP.format("self.ls[:-1]") + "\n        last = self.ls[-1]\n        x = x + last.features",
        LOOP.format("self.ls[:-1]") + "\n        x = self.ls[-2](x)",
        LOOP.format("self.ls[:-2]") + "\n        " + LAST,
        LOOP.format("self.ls[:-1]") + "\n        x = self.n and self.ls[-1](x)",
        "for other, layer in zip(self.ls[:-1], self.more):\n            x = layer(x)\n        "
        + LAST,
    ],
)
def test_two_parts_that_some_calls_do_not_reach_are_left_to_first_calls(body: str) -> None:
    assert in_features(sizes_of(ALIKE.format(body.replace("x = ", "y = ")))) == [LAZY]


def test_the_last_of_a_list_is_given_what_the_others_give() -> None:
    source = VARIED.format(LOOP.format("self.ls[:-1]") + "\n        x = self.ls[-1](x)")
    found = sizes_of(source.replace("n: int = 4", "widths: tuple"))
    assert [one.name for one in found.new_arguments] == ["in_features"]
    assert found.loop_carries


@pytest.mark.parametrize("body", ["x = self.ls[0](x)", "x = self.ls[1](self.ls[0](x))"])
def test_a_list_of_which_single_items_are_read_is_left_to_first_calls(body: str) -> None:
    assert in_features(analysis(body)) == [LAZY]


VARIED = MODEL.replace("nn.Dense(3) for _ in range(self.n)", "nn.Dense(k) for k in self.widths")


@pytest.mark.parametrize(
    "body",
    [
        LOOP.format("self.ls[::-1]"),
        LOOP.format("list(self.ls)[::-1]"),
        "for i in range(self.n - 1, -1, -1):\n            x = self.ls[i](x)",
        "for i in reversed(range(self.n)):\n            x = self.ls[i](x)",
        "for i in self.order:\n            x = self.ls[i](x)",
        "for i in range(self.n):\n            x = self.ls[self.n - 1 - i](x)",
        "for i, k in enumerate(self.order):\n            x = self.ls[k](x)",
    ],
)
def test_sizes_are_not_carried_through_a_list_in_another_order(body: str) -> None:
    source = VARIED.format(body).replace(
        "n: int = 4", "n: int\n    widths: tuple\n    order: tuple"
    )
    found = sizes_of(source)
    assert in_features(found) == [LAZY]
    assert not found.loop_carries
    assert not found.new_arguments


@pytest.mark.parametrize(
    "body",
    [
        LOOP.format("self.ls"),
        "for i in range(len(self.widths)):\n            x = self.ls[i](x)",
        "for i, _ in enumerate(self.widths):\n            x = self.ls[i](x)",
    ],
)
def test_sizes_are_carried_through_a_list_in_its_order(body: str) -> None:
    source = VARIED.format(body).replace(
        "n: int = 4", "n: int\n    widths: tuple\n    order: tuple"
    )
    found = sizes_of(source)
    assert [one.name for one in found.new_arguments] == ["in_features"]
    assert found.loop_carries
