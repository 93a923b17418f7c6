"""Layers of a list of which nobody knows how long it is, one after the other: ``nn.Sequential``."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike
from tests.sizes.inference import LAZY, carried, compact, in_features, problems, sizes_of

BLOCK = """\
class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(self.width)(x)
"""
MADE = "layers = []\nfor w in self.widths:\n    "
RUN = "\nreturn nn.Dense(3)(nn.Sequential(layers)(x))"
CARRIED = [("x_features", "in_features", "w")]


@pytest.mark.parametrize(
    ("body", "carries", "expected"),
    [
        ("layers = [nn.Dense(w) for w in self.widths]", CARRIED, ["x_features", "x_features"]),
        ("layers = tuple(nn.Dense(w) for w in self.widths)", CARRIED, ["x_features"] * 2),
        (MADE + "layers.append(nn.Dense(w))", CARRIED, ["x_features", "x_features"]),
        (MADE + "layers += [nn.Dense(w), nn.relu]", CARRIED, ["x_features", "x_features"]),
        (
            MADE + "layers.extend([nn.Dense(w), nn.LayerNorm()])",
            CARRIED,
            ["x_features", "w", "x_features"],
        ),
        (
            MADE + "layers += [nn.Dense(w), nn.relu]\nlayers.append(nn.Dense(5))",
            CARRIED,
            ["x_features", "x_features", "5"],
        ),
        (
            MADE + "layers.append(nn.Dense(w))\nlayers = [nn.Dense(5), *layers, nn.Dense(6)]",
            [("x_features", "5", "w")],
            ["x_features", "in_features", "x_features", "6"],
        ),
        (
            MADE.replace("w in self", "i, w in enumerate(self").replace(":", "):")
            + "layers.append(nn.Dense(w))\n    if i < len(self.widths) - 1:\n        layers.append(nn.relu)",
            CARRIED,
            ["x_features", "x_features"],
        ),
        (
            MADE
            + "layers.append(nn.Dense(w))\n    if w > 3:\n        layers.append(nn.LayerNorm())\n    layers.append(nn.relu)",
            CARRIED,
            ["x_features", "w", "x_features"],
        ),
        ("layers = [nn.Dense(5)] + [Block(5) for _ in self.widths]", [], ["in_features", "5", "5"]),
        ("layers = [Block(5) for _ in self.widths] + [nn.Dense(6)]", [], None),
    ],
)
def test_each_layer_takes_what_the_last_one_made(
    body: str, carries: list[tuple[str, str, str]], expected: list[str] | None
) -> None:
    result = sizes_of(compact(body + RUN, "widths: Sequence[int]", before=BLOCK))
    assert problems(result) == []
    if expected is not None:
        assert carried(result) == carries
        assert in_features(result)[:-1] == expected
    assert LAZY not in in_features(result)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "if self.norm:\n    layers.append(nn.LayerNorm())\nlayers.append(nn.Dense(2))",
            ["in_features", "4", "4"],
        ),
        (
            "if self.norm:\n    layers += [nn.Dense(6)]\nlayers += [nn.Dense(2)]",
            ["in_features", "4", "6 if self.norm else 4"],
        ),
        ("layers = layers if self.norm else [nn.Dense(7)]", ["in_features", "in_features"]),
    ],
)
def test_a_list_may_be_longer_under_a_condition(body: str, expected: list[str]) -> None:
    source = compact(f"layers = [nn.Dense(4)]\n{body}{RUN}", "norm: bool = True")
    result = sizes_of(source)
    assert problems(result) == []
    assert in_features(result)[: len(expected)] == expected


@pytest.mark.parametrize(
    "body",
    [
        MADE + "layers.append(nn.Dense(w))\n    if w > 3:\n        layers.append(nn.Dense(3))",
        MADE
        + "if w > 3:\n        layers.append(nn.Dense(w))\n    else:\n        layers += [nn.relu, nn.Dense(2)]",
        MADE + "if w > 3:\n        continue\n    layers += [nn.Dense(w), nn.relu]",
        MADE + "layers += [nn.Dense(w), nn.relu]\nlayers.insert(0, nn.Dense(2))",
        MADE + "layers += [nn.Dense(w), nn.relu]\nlayers = layers[::-1]",
        MADE + "layers += [nn.Dense(w), nn.relu]\nlayers.pop()",
        MADE + "layers += [nn.Dense(w), nn.relu]\nlayers[0] = mystery",
    ],
)
def test_a_list_that_is_not_known_part_by_part_shows_no_size(body: str) -> None:
    result = sizes_of(compact(body + RUN, "widths: Sequence[int]"))
    assert LAZY in in_features(result)


def test_a_program_with_such_lists_computes_the_same() -> None:
    source = f"""\
import flax.linen as nn
import jax
import jax.numpy as jnp
from typing import Sequence


{BLOCK}

class Tower(nn.Module):
    widths: Sequence[int]

    def setup(self):
        layers = []
        for w in self.widths:
            layers.append(nn.Dense(w))
            if w > 3:
                layers += [nn.relu, nn.LayerNorm()]
        layers.append(Block(self.widths[-1]))
        self.net = nn.Sequential(layers)
        self.blocks = nn.Sequential([Block(6) for _ in self.widths])

    def __call__(self, x):
        return self.net(self.blocks(x))


class Perhaps(nn.Module):
    norm: bool

    @nn.compact
    def __call__(self, x):
        layers = [nn.Dense(4)]
        if self.norm:
            layers.append(nn.LayerNorm())
        layers.append(nn.Dense(2))
        return nn.Sequential(layers)(x)


class Compact(nn.Module):
    widths: Sequence[int]

    @nn.compact
    def __call__(self, x):
        layers = [nn.Dense(4)]
        for w in self.widths:
            layers.append(nn.Dense(w))
        return nn.Sequential([*layers, nn.relu, nn.Dense(2)])(x)


def main():
    x = jnp.arange(12.0).reshape(2, 6)
    for model in (Tower((4, 3)), Compact((4, 3)), Perhaps(True), Perhaps(False)):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree_util.tree_leaves_with_path((variables, model.apply(variables, x))))
"""
    assert set(printed_alike(source).values()) == {"explicit"}
