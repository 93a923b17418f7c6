"""Sizes by scope name, read off the calls of a Linen trace."""

from __future__ import annotations

from typing import Any

import pytest

from nnx_migrate.model import ClassMap, SizeArgument
from nnx_migrate.parity.calls import Call
from nnx_migrate.parity.migration_map import class_map_of
from nnx_migrate.parity.sizing import sizes_for

DENSE = "flax.linen.linear.Dense"
BLOCK = "app.models.Block"
OUTER = "app.models.Outer"


def call(path: str, class_name: str, **shapes: tuple[int, ...]) -> Call:
    return Call(
        tuple(path.split("/")) if path else (), class_name, "__call__", tuple(shapes.items())
    )


def entry(name: str, *sizes: SizeArgument) -> ClassMap:
    return ClassMap(name, name, size_arguments=sizes)


def outer(*, in_features_of: Any = None, in_features_of_of: Any = None) -> None:
    """The constructor of a migrated class, as far as its arguments matter."""


CALLS = (
    call("", OUTER, x=(2, 5)),
    call("Dense_0", DENSE, inputs=(2, 5)),
    call("Block_0", BLOCK, x=(2, 7)),
    call("Block_0/Dense_0", DENSE, inputs=(2, 7)),
    call("Block_0/Dense_1", DENSE, inputs=(2, 9)),
    call("Block_1", BLOCK, x=(2, 3)),
)
OF_EACH = SizeArgument("in_features_of", each="in_features")


def found(*sizes: SizeArgument, block: ClassMap) -> dict[str, Any]:
    maps = {OUTER: entry(OUTER, *sizes), BLOCK: block}
    sizes_found, missing = sizes_for(outer, (), maps[OUTER], CALLS, (), OUTER, maps)
    assert missing == ()
    return {key: value for key, value in sizes_found.items() if value}


def test_built_in_layers_and_classes_that_take_the_size_are_in_the_dict() -> None:
    block = entry(BLOCK, SizeArgument("in_features", argument="x"))
    assert found(OF_EACH, block=block)["in_features_of"] == {
        "Dense_0": 5,
        "Block_0": 7,
        "Block_1": 3,
    }


def test_a_class_that_takes_no_such_size_is_left_out() -> None:
    assert found(OF_EACH, block=entry(BLOCK))["in_features_of"] == {"Dense_0": 5}


def test_a_dict_of_dicts_holds_what_each_submodule_needs() -> None:
    sizes = found(
        SizeArgument("in_features_of_of", each="in_features_of"), block=entry(BLOCK, OF_EACH)
    )
    assert sizes["in_features_of_of"] == {"Block_0": {"Dense_0": 7, "Dense_1": 9}, "Block_1": {}}


def test_the_dict_of_one_submodule_holds_its_submodules() -> None:
    size = SizeArgument("in_features_of", submodule="Block_0", each="in_features")
    assert found(size, block=entry(BLOCK))["in_features_of"] == {"Dense_0": 7, "Dense_1": 9}


@pytest.mark.parametrize(("within", "sizes"), [("Dense_1", {"Block_0": 9}), ("Dense_2", {})])
def test_a_size_within_each_submodule_is_listed_under_the_submodule(
    within: str, sizes: dict[str, int]
) -> None:
    size = SizeArgument("in_features_of", each="in_features", within=within)
    assert found(size, block=entry(BLOCK)) == ({"in_features_of": sizes} if sizes else {})


def test_a_class_that_its_package_presents_as_its_own_is_found() -> None:
    block = entry(BLOCK)
    assert class_map_of({BLOCK: block}, "app.Block") == block


def test_two_classes_of_one_name_below_a_package_are_none() -> None:
    maps = {BLOCK: entry(BLOCK), "app.other.Block": entry("app.other.Block")}
    assert class_map_of(maps, "app.Block") is None


def test_a_class_of_another_package_is_none() -> None:
    assert class_map_of({BLOCK: entry(BLOCK)}, "other.Block") is None
