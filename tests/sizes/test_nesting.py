"""Scope paths of submodules that stand inside the value of an attribute of ``setup``."""

from __future__ import annotations

import pytest

from tests.sizes.inference import LAZY, in_features, sizes_of

CLASSES = """
class Cell(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.features)(x)

class Layer(nn.Module):
    cell: Cell
    other: Any = None

    def __call__(self, x):
        return self.cell(mystery(x))

class Model(nn.Module):
    n: int

    def setup(self):
        self.layers = {value}

    def __call__(self, x):
        for layer in self.layers:
            x = layer(mystery(x))
        return x
"""


def paths_of(value: str) -> dict[str, str | None]:
    """By name of an argument: the submodule it is a size of."""
    result = sizes_of(CLASSES.format(value=value))
    assert not result.problems
    return {one.name: one.submodule for one in result.new_arguments}


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ("[Layer(cell=Cell(4))]", ["layers_0/cell"]),
        ("[Layer(Cell(4)), Layer(Cell(5))]", ["layers_0/cell", "layers_1/cell"]),
        ("(Layer(None, Cell(4)), Layer(Cell(3)))", ["layers_1/cell"]),
        ("[Layer(Cell(4) if self.n else Cell(5))]", ["layers_0/cell"]),
        ("[Layer(Cell(4), name='own')]", ["own/cell"]),
        ("[Layer(Cell(4, name='own'))]", ["own"]),
        (
            "[nn.Sequential([nn.Dense(3), mystery, nn.Dense(4)])]",
            ["layers_0/layers_0", "layers_0/layers_2"],
        ),
    ],
)
def test_a_submodule_inside_an_attribute_has_linens_path(value: str, paths: list[str]) -> None:
    names = [f"{one.replace('/', '_')}_in_features" for one in paths]
    assert paths_of(value) == dict(zip(names, paths, strict=True))


def test_an_item_of_a_dict_is_found_under_its_key() -> None:
    source = CLASSES.format(value="{'a': Layer(Cell(4))}").replace("self.layers:", "[]:")
    source = source.replace("return x\n", "return self.layers['a'](mystery(x))\n")
    (found,) = sizes_of(source).new_arguments
    assert (found.name, found.submodule) == ("layers_a_cell_in_features", "layers_a/cell")


@pytest.mark.parametrize(
    "value",
    [
        "[Layer(Cell(w)) for w in range(self.n)]",
        "[Layer(wrap(Cell(4)))]",
        "[Layer(wrap(Cell(w))) for w in range(self.n)]",
        "[[Layer(Cell(w))] for w in range(self.n)]",
        "[Layer(*[Cell(4)])]",
    ],
)
def test_a_submodule_in_a_loop_or_whose_path_is_not_known_is_lazy(value: str) -> None:
    found = sizes_of(CLASSES.format(value=value))
    assert in_features(found)[0] == LAZY
    assert not found.problems
    assert not found.new_arguments
