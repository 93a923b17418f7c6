"""Tables are Linen's, letter for letter, but for the columns' order, which Linen leaves to chance."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, struct
from flax.linen import summary as theirs

import nnx_migrate.linen as nn
from nnx_migrate.linen import summary

PLAIN = {"force_terminal": False, "no_color": True, "width": 10_000}
X = jnp.ones((4, 6))


class Block(linen.Module):
    features: int

    @linen.compact
    def __call__(self, x: jax.Array, scale: float = 1.0) -> jax.Array:
        init = linen.with_partitioning(linen.initializers.lecun_normal(), (None, "data"))
        x = linen.Dense(self.features, kernel_init=init)(x)
        return linen.Dropout(0.5, deterministic=False)(x) * scale

    def encode(self, x: jax.Array) -> jax.Array:
        return self(x)


class Model(linen.Module):
    """One block called twice, another by a method and with keywords."""

    def setup(self) -> None:
        self.first = Block(6)
        self.second = Block(3)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.first(self.first(x), scale=2.0)
        return self.second.encode(x)


class Key(enum.StrEnum):
    x = "x"


class Names(struct.PyTreeNode):
    names: tuple[str, ...] = struct.field(pytree_node=False)


class Odd(linen.Module):
    """Inputs that are no arrays, enums as keys, None, a variable that is no array."""

    @linen.compact
    def __call__(self, inputs: Any, flag: bool, nothing: None) -> Any:
        self.sow("notes", "names", Names(("a", "b")))
        return {"sum": jnp.sum(linen.Dense(2)(inputs[Key.x])), "more": [np.pi, None, nothing]}


KEYS = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
COSTS = {"compute_flops": True, "compute_vjp_flops": True}
CASES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "all": (Model(), (X,), {}),
    "to a depth": (Model(), (X,), {"depth": 1}),
    "the top only": (Model(), (X,), {"depth": 0}),
    "each call": (Model(), (X,), {"show_repeated": True}),
    "costs": (Model(), (X,), COSTS),
    "forward costs": (Model(), (X,), {"compute_flops": True}),
    "styles": (Model(), (X,), {"table_kwargs": {"box": None}, "column_kwargs": {"width": 12}}),
    "what is no array": (Odd(), ({Key.x: X}, True, None), COSTS),
    "inside a lift": (
        linen.RNN(linen.LSTMCell(3)),
        (jnp.ones((2, 5, 6)),),
        COSTS,
    ),
}


class InOrder(dict[Any, None]):
    """A set that remembers its order: Linen's collections stand in that of a set."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__(dict.fromkeys(values))

    def add(self, value: Any) -> None:
        self[value] = None


@pytest.fixture(autouse=True)
def linen_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theirs, "set", InOrder, raising=False)


@pytest.mark.parametrize(("module", "inputs", "options"), CASES.values(), ids=CASES)
def test_the_text_is_linens(module: Any, inputs: Any, options: dict[str, Any]) -> None:
    options = {"console_kwargs": PLAIN, **options}
    found = summary.tabulate(module, KEYS, **options)(*inputs)
    wanted = theirs.tabulate(module, KEYS, **options)(*inputs)
    assert found == wanted
    assert "Total Parameters" in found


def test_markup_is_linens_too() -> None:
    assert summary.tabulate(Model(), KEYS)(X) == theirs.tabulate(Model(), KEYS)(X)


@pytest.mark.parametrize("depth", [None, 0, 1, 2])
def test_all_rows_together_count_each_parameter_once(depth: int | None) -> None:
    rows = summary._get_module_table(Model(), depth, False, False, False)(KEYS, X)
    assert sum(row.size_and_bytes(["params"])["params"][0] for row in rows) == 6 * 6 + 6 + 6 * 3 + 3


def test_collections_stand_in_one_order_in_every_process() -> None:
    module = linen.BatchNorm(use_running_average=False)
    rows = summary._get_module_table(module, None, False, False, False)(KEYS, X)
    assert rows.collections == ("batch_stats", "params")


def test_rows_hold_shapes_and_numbers_as_they_are() -> None:
    table = summary._get_module_table(Model(), None, True, False, False)(KEYS, X)
    second = [row for row in table if row.path == ("first",)][1]
    inputs, keywords = second.inputs
    assert inputs.shape == (4, 6)
    assert keywords["scale"].obj == 2.0
    assert second.module_variables == second.counted_variables == {}
    assert (second.flops, second.vjp_flops) == (-1, -1)
    assert second.module_copy.parent is None


def test_a_value_that_stands_for_nothing_is_told() -> None:
    with pytest.raises(TypeError, match="expected a stand-in for a value, got 3 of int"):
        summary._from_value_representation(3)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1 B"),
        (1000, "1,000 B"),
        (1001, "1.0 KB"),
        (2_500_000, "2.5 MB"),
        (10**12, "1,000.0 GB"),
    ],
)
def test_sizes_are_told_in_the_largest_fitting_unit(number: int, text: str) -> None:
    assert summary._bytes_repr(number) == text == theirs._bytes_repr(number)


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1,), {}), ((1, 2), {}), ((), {"a": 1}), ((1,), {"a": 2})]
)
def test_inputs_are_shown_as_linen_shows_them(args: Any, kwargs: Any) -> None:
    assert summary._process_inputs(args, kwargs) == theirs._process_inputs(args, kwargs)


@pytest.mark.parametrize("kind", [linen, nn])
def test_a_copy_that_no_module_owns_has_no_row(kind: Any) -> None:
    class Part(kind.Module):  # type: ignore[misc]
        def __call__(self, x: Any) -> Any:
            return x * 2

    class Net(kind.Module):  # type: ignore[misc]
        @kind.compact
        def __call__(self, x: Any) -> Any:
            return Part().clone()(x)

    with pytest.raises(AssertionError):
        Net().tabulate(jax.random.key(0), jnp.ones((1, 2)))
