"""Sizes by the names of constructor arguments."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import nnx_migrate.linen as nn
from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes.declaration import Size, UnknownSize
from nnx_migrate.linen.core.sizes.names import NamedSize, size_by_name
from nnx_migrate.model import SizeArgument
from tests.rewrite.test_lazy_form import TOLD_BY_NAME

KEY = jax.random.key(0)


class Graph(NamedTuple):
    nodes: Any
    edges: Any


GRAPH = Graph(jnp.ones((7, 3)), jnp.ones((9, 5)))


class State(NamedTuple):
    cell: Any
    graph_of: Any


STATE = State((jnp.ones((2, 11)), [jnp.ones((2, 13)), GRAPH]), GRAPH)
INPUTS = {
    "carry": (jnp.ones((2, 6)), jnp.ones((2, 8))),
    "x": jnp.ones((2, 4)),
    "graph": GRAPH,
    "state": STATE,
}
READ = {
    "the first input, of whatever name": ("in_features", (), 4),
    "a cell's input": ("cell_in_features", ("cell",), 4),
    "an input": ("x_features", (), 4),
    "its shape": ("x_shape", (), (2, 4)),
    "an item": ("carry_1_features", (), 8),
    "a field": ("edges_features", (), 5),
    "a field of an input by its name": ("graph_edges_features", (), 5),
    "an item of a field": ("cell_0_features", (), 11),
    "an item of an item of a field": ("state_cell_1_0_features", (), 13),
    "a field of an item": ("cell_1_1_nodes_features", (), 3),
    "a field of a field, with a line": ("graph_of_nodes_features", (), 3),
    "a submodule's": ("mlp_head_in_features", ("mlp", "head"), 4),
    "a submodule's item": ("cell_0_carry_0_features", ("cell_0",), 6),
}
NOT_READ = {
    "of another submodule": ("mlp_head_in_features", ("mlp", "tail")),
    "of a submodule above": ("mlp_head_in_features", ("mlp",)),
    "of no input": ("y_features", ()),
    "of no item": ("x_of_features", ()),
    "of no item of a field": ("cell_2_nodes_features", ()),
    "of no field of a field": ("graph_of_globals_features", ()),
    "of a method of an input": ("count_features", ()),
    "of a part of the part": ("mlp_in_features", ("mlp", "head")),
}


@pytest.mark.parametrize(("name", "path", "size"), READ.values(), ids=READ)
def test_a_name_is_read_where_it_says(name: str, path: tuple[str, ...], size: Any) -> None:
    assert NamedSize.of_name(name).read_at(path, INPUTS) == size


@pytest.mark.parametrize(("name", "path"), NOT_READ.values(), ids=NOT_READ)
def test_a_name_is_not_read_elsewhere(name: str, path: tuple[str, ...]) -> None:
    assert NamedSize.of_name(name).read_at(path, INPUTS) is None


OF_PARTS = [one for one in TOLD_BY_NAME.values() if one.submodule]


@pytest.mark.parametrize("size", OF_PARTS, ids=[one.name for one in OF_PARTS])
def test_names_that_rewrite_leaves_to_be_read_are_read(size: SizeArgument) -> None:
    inputs = {size.argument or "x": jnp.ones((2, 4))}
    wanted = 4 if size.axis == -1 else (2, 4)
    path = tuple(str(size.submodule).split("/"))
    assert NamedSize.of_name(size.name).read_at(path, inputs) == wanted


@pytest.mark.parametrize(
    "name", ["features", "width", "_features", "x_features_of_x", "in_features_of", "shape_of"]
)
def test_other_names_are_no_sizes(name: str) -> None:
    assert NamedSize.of_name(name) is None


class Head(nnx.Module):
    def __init__(self, *, in_features: int, hidden_features: int = 2, rngs: nnx.Rngs):
        self.Dense_0 = nnx.Linear(in_features, hidden_features, rngs=rngs)

    def __call__(self, hidden):
        return self.Dense_0(hidden)


class Net(nnx.Module):
    """Its parts get what no input shows; ``wide_features`` may be given."""

    def __init__(
        self,
        *,
        nodes_features: int,
        head_in_features: int,
        mix_in_features: int,
        wide_features: int | None = None,
        rngs: nnx.Rngs,
    ):
        self.nodes = nnx.Linear(nodes_features, nodes_features, rngs=rngs)
        self.head = Head(in_features=head_in_features, rngs=rngs)
        self.mix = nnx.Linear(mix_in_features, wide_features or 4, rngs=rngs)

    def __call__(self, graph):
        x = self.nodes(graph.nodes)
        x = self.mix(jnp.concatenate([x, x], -1))
        return self.head(jnp.concatenate([x, x], -1))


@pytest.mark.parametrize(("fields", "wide"), [({}, 4), ({"wide_features": 6}, 6)])
def test_what_is_not_given_is_measured_by_its_name(fields: Any, wide: int) -> None:
    params = nn.lazy(Net)(**fields).init(KEY, GRAPH)["params"]
    shapes = jax.tree.map(jnp.shape, params)
    assert shapes["nodes"]["kernel"] == (3, 3)
    assert shapes["mix"]["kernel"] == (6, wide)
    assert shapes["head"]["Dense_0"]["kernel"] == (2 * wide, 2)


class Twice(nnx.Module):
    """Only inputs as wide as its own output fit, and its constructor says so."""

    def __init__(self, width: int, *, x_shape: tuple[int, ...], rngs: nnx.Rngs):
        self.Dense_0 = nnx.Linear(x_shape[-1], width, rngs=rngs)
        nnm.abstractly(lambda x: self.Dense_0(self.Dense_0(x)), nnm.abstract_array(x_shape))

    def __call__(self, x):
        return self.Dense_0(self.Dense_0(x))


class Around(nnx.Module):
    def __init__(self, width: int, *, twice_x_shape: tuple[int, ...], rngs: nnx.Rngs):
        self.Dense_0 = nnx.Linear(7, width, rngs=rngs)
        self.twice = Twice(width, x_shape=twice_x_shape, rngs=rngs)

    def __call__(self, x):
        return self.twice(self.Dense_0(x))


@pytest.mark.parametrize("width", [4, 36])
def test_a_width_that_alone_fits_is_found_among_the_arguments(width: int) -> None:
    params = nn.lazy(Around)(width).init(KEY, jnp.ones((3, 7)))["params"]
    assert params["twice"]["Dense_0"]["kernel"].shape == (width, width)


class Pair(nnx.Module):
    """Names of submodules run into each other."""

    def __init__(self, *, a_b_in_features: int, rngs: nnx.Rngs):
        self.a_b = nnx.Linear(a_b_in_features, 4, rngs=rngs)
        self.a = nnx.Dict(b=nnx.Linear(4, 5, rngs=rngs))

    def __call__(self, x):
        return self.a["b"](self.a_b(x))


class Nowhere(nnx.Module):
    def __init__(self, *, tail_in_features: int, rngs: nnx.Rngs):
        self.head = nnx.Linear(3, tail_in_features, rngs=rngs)

    def __call__(self, x):
        return self.head(x)


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (Pair, r"a_b_in_features may be a size of each of a/b, a_b: say which with lazy\("),
        (Nowhere, r"Nowhere: nothing that was called has an input for tail_in_features: give it"),
    ],
)
def test_a_name_that_does_not_say_one_place_raises(cls: Any, message: str) -> None:
    with pytest.raises(UnknownSize, match=message):
        nn.lazy(cls)().init(KEY, jnp.ones((2, 3)))


class Perhaps(nnx.Module):
    """A part that a field leaves out, whose size is asked for all the same."""

    def __init__(self, wide: bool = False, *, tail_in_features: int, rngs: nnx.Rngs):
        self.head = nnx.Linear(3, 4, rngs=rngs)
        if wide:
            self.tail = nnx.Linear(tail_in_features, 2, rngs=rngs)

    def __call__(self, x):
        x = self.head(x)
        return self.tail(x) if hasattr(self, "tail") else x


@pytest.mark.parametrize(("wide", "parts"), [(False, {"head"}), (True, {"head", "tail"})])
def test_a_size_of_a_part_that_is_left_out_is_none(wide: bool, parts: set[str]) -> None:
    params = nn.lazy(Perhaps)(wide).init(KEY, jnp.ones((2, 3)))["params"]
    assert params.keys() == parts


def test_a_place_that_is_declared_goes_before_the_name() -> None:
    variables = nn.lazy(Pair, a_b_in_features=nn.Size(of="a_b"))().init(KEY, jnp.ones((2, 3)))
    assert variables["params"]["a_b"]["kernel"].shape == (3, 4)


def test_a_definition_with_a_given_size_is_the_same_class_for_isinstance() -> None:
    module = nn.lazy(Net)(wide_features=6)
    assert isinstance(module, nn.lazy(Net))
    assert module.clone().wide_features == 6


@pytest.mark.parametrize(
    ("name", "inputs", "size"),
    [
        ("input_x_features", ("self", "x"), Size("x")),
        ("input_x_shape", ("self", "x"), Size("x", axis=None)),
        ("input_x_features", ("self", "x", "input_x"), Size("input_x")),
    ],
)
def test_a_name_that_is_taken_has_input_in_front(
    name: str, inputs: tuple[str, ...], size: Size
) -> None:
    parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    assert size_by_name(parameter, inputs) == size
