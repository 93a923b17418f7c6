"""Sizes, read off the calls of a Linen trace."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen

from nnx_migrate.model import ClassMap, SizeArgument
from nnx_migrate.parity.instantiation.calls import Call, record_calls
from nnx_migrate.parity.instantiation.migration_map import class_map_of
from nnx_migrate.parity.instantiation.sizing import sizes_for
from nnx_migrate.parity.sides.bisect import recorded_linen

DENSE = "flax.linen.linear.Dense"
BLOCK = "app.models.Block"
OUTER = "app.models.Outer"


def call(path: str, class_name: str, **shapes: tuple[int, ...]) -> Call:
    return Call(
        tuple(path.split("/")) if path else (), class_name, "__call__", tuple(shapes.items())
    )


def entry(name: str, *sizes: SizeArgument) -> ClassMap:
    return ClassMap(name, name, size_arguments=sizes)


def outer(*, part_features: int) -> None:
    """The constructor of a migrated class, as far as its arguments matter."""


CALLS = (
    call("", OUTER, x=(2, 5)),
    call("Dense_0", DENSE, inputs=(2, 5)),
    call("Block_0", BLOCK, x=(2, 7)),
    call("Block_0/Dense_0", DENSE, inputs=(2, 7)),
    call("Block_0/Dense_1", DENSE, inputs=(2, 9)),
    call("Block_1", BLOCK, x=(2, 3)),
)


@pytest.mark.parametrize(
    ("submodule", "size"),
    [("Dense_0", 5), ("Block_1", 3), ("Block_0/Dense_1", 9), ("Block_1/Dense_1", None)],
)
def test_the_size_of_a_submodule_is_that_of_the_call_at_its_path(
    submodule: str, size: int | None
) -> None:
    asked = SizeArgument("part_features", submodule=submodule)
    found, missing = sizes_for(outer, (), entry(OUTER, asked), CALLS, (), OUTER)
    assert found.get("part_features") == size
    assert missing == (("part_features",) if size is None else ())


def test_a_class_that_its_package_presents_as_its_own_is_found() -> None:
    block = entry(BLOCK)
    assert class_map_of({BLOCK: block}, "app.Block") == block


def test_two_classes_of_one_name_below_a_package_are_none() -> None:
    maps = {BLOCK: entry(BLOCK), "app.other.Block": entry("app.other.Block")}
    assert class_map_of(maps, "app.Block") is None


def test_a_class_of_another_package_is_none() -> None:
    assert class_map_of({BLOCK: entry(BLOCK)}, "other.Block") is None


def told(*, with_c: bool = False, init_train: bool) -> None:
    """The constructor of a migrated class that is told what its first call had."""


FACTS = (
    SizeArgument("with_c", argument="c", axis=None, fact="given", default=False),
    SizeArgument("init_train", argument="train", axis=None, fact="truth"),
)


def fact_call(path: str, *facts: tuple[str, str, bool]) -> Call:
    return Call(tuple(path.split("/")), BLOCK, "__call__", (), facts)


def test_facts_are_those_of_the_modules_own_call() -> None:
    calls = (
        fact_call("a", ("c", "given", True), ("train", "given", True), ("train", "truth", False)),
        fact_call("b", ("train", "given", True), ("train", "truth", True)),
    )
    one = sizes_for(told, (), entry(BLOCK, *FACTS), calls, ("a",), BLOCK)
    assert one == ({"with_c": True, "init_train": False}, ())
    two = sizes_for(told, (), entry(BLOCK, *FACTS), calls, ("b",), BLOCK)
    assert two == ({"with_c": False, "init_train": True}, ())


def test_facts_that_no_call_shows_or_calls_disagree_on_are_missing() -> None:
    calls = (
        fact_call("a", ("train", "truth", False)),
        fact_call("b", ("train", "truth", True)),
    )
    assert sizes_for(told, (), entry(BLOCK, *FACTS), calls, None, BLOCK) == (
        {"with_c": False},
        ("init_train",),
    )
    array = (fact_call("a", ("train", "given", True)),)
    assert sizes_for(told, (), entry(BLOCK, *FACTS), array, ("a",), BLOCK)[1] == ("init_train",)


class Flagged(linen.Module):
    @linen.compact
    def __call__(self, x: Any, c: Any = None, train: bool = True) -> Any:
        return x


def test_a_trace_shows_what_was_given_and_which_flags_were_set() -> None:
    (seen,) = record_calls(Flagged(), (jnp.ones(3), None), {"train": False})
    assert [seen.fact(name, "given") for name in ("x", "c", "train", "z")] == [
        True,
        False,
        True,
        None,
    ]
    assert [seen.fact(name, "truth") for name in ("x", "c", "train")] == [None, False, False]


class Identity(linen.Module):
    """A class whose own ``__init__`` leaves out Linen's: its instances are nowhere in the model."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, x: Any) -> Any:
        return x


class HoldsIdentity(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        return linen.Dense(3)(Identity(width=2)(x))


def test_a_submodule_without_a_place_has_no_calls() -> None:
    calls = record_calls(HoldsIdentity(), (jnp.ones((2, 4)),), {})
    assert [one.path for one in calls] == [(), ("Dense_0",)]


def test_a_submodule_without_a_place_has_no_recorded_output() -> None:
    x = jnp.ones((2, 4))
    variables = HoldsIdentity().init(jax.random.key(0), x)
    with recorded_linen() as record:
        jax.block_until_ready(HoldsIdentity().apply(variables, x))
    assert sorted(one.path for one in record.outputs()) == ["", "Dense_0"]


def test_the_size_of_a_cell_is_not_that_of_its_carry_however_it_is_called() -> None:
    class Model(linen.Module):
        @linen.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            return linen.RNN(linen.SimpleCell(1))(x)

    def migrated(*, cell_in_features: int) -> None:
        """The constructor of a migrated class, as far as its arguments matter."""

    calls = record_calls(Model(), (jnp.ones((2, 3, 9)),), {})
    size = SizeArgument("cell_in_features", submodule="SimpleCell_0")
    found = sizes_for(migrated, (), entry(OUTER, size), calls, (), OUTER)
    assert found == ({"cell_in_features": 9}, ())


class Fuse(linen.Module):
    @linen.compact
    def __call__(self, xs: Any, scale: float = 1.0) -> jax.Array:
        arrays = [one for one in jax.tree.leaves(xs) if not isinstance(one, float)]
        return linen.Dense(2)(jnp.concatenate(arrays, axis=-1)) * scale


def fused(*, xs_shape: Any) -> None:
    """The constructor of a migrated class that reads the shapes of an input."""


@pytest.mark.parametrize(
    ("xs", "shapes"),
    [
        (jnp.ones((2, 3)), (2, 3)),
        ([jnp.ones((2, 3)), jnp.ones((2, 5))], [(2, 3), (2, 5)]),
        ({"a": (jnp.ones((2, 3)),), "b": jnp.ones((2, 1))}, {"a": ((2, 3),), "b": (2, 1)}),
        ({"a": jnp.ones((2, 3)), "b": None}, {"a": (2, 3), "b": None}),
    ],
)
def test_the_shapes_of_all_arrays_of_an_input_are_one_size(xs: Any, shapes: Any) -> None:
    name = f"{__name__}.Fuse"
    size = SizeArgument("xs_shape", argument="xs", axis=None)
    calls = record_calls(Fuse(), (xs,), {})
    assert sizes_for(fused, (), entry(name, size), calls, (), name) == ({"xs_shape": shapes}, ())


def test_an_input_with_anything_else_shows_no_shapes() -> None:
    name = f"{__name__}.Fuse"
    size = SizeArgument("xs_shape", argument="xs", axis=None)
    calls = record_calls(Fuse(), ([jnp.ones((2, 3)), 2.0],), {})
    assert sizes_for(fused, (), entry(name, size), calls, (), name) == ({}, ("xs_shape",))
