"""Building the migrated twin of a Linen module: fields that cross, sizes, refusals."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax.sharding import Mesh, PartitionSpec

from nnx_migrate.model import ClassMap, MigrationMap, SizeArgument
from nnx_migrate.parity import BadCase, ParityCase, check
from nnx_migrate.parity.instantiation.calls import Call
from nnx_migrate.parity.instantiation.fields import CannotCross, describe
from nnx_migrate.parity.instantiation.instantiate import build, instantiate
from nnx_migrate.parity.instantiation.local_classes import NotAlone
from nnx_migrate.parity.instantiation.sizing import sizes_for

X = np.ones((2, 7), np.float32)


class Kind(enum.Enum):
    WIDE = 1


@dataclass(frozen=True)
class Config:
    width: int
    dtype: Any = jnp.float32
    kind: Kind = Kind.WIDE


class Holder(linen.Module):
    """A Linen module with one field of any kind."""

    value: Any = None

    @linen.compact
    def __call__(self, x):
        return linen.Dense(3)(x)


class Twin(nnx.Module, pytree=False):
    """The migrated Holder: keeps what its constructor was given."""

    def __init__(self, value: Any = None, *, in_features: int, rngs: nnx.Rngs):
        self.seen = (value, in_features)


def crossed(value: Any, *, same_process: bool = False) -> Any:
    """Send a field through the bytes that another process would read."""
    description = describe(Holder(value), (X,), same_process=same_process)
    return build(description, nnx.Rngs(0), root=Twin).seen[0]


@pytest.mark.parametrize(
    "value",
    [
        3,
        "same",
        (1, (2, 3)),
        {"a": [1, 2.5]},
        Kind.WIDE,
        Config(width=4),
        jnp.bfloat16,
        jnp.dtype("float32"),
        jax.lax.Precision.HIGHEST,
        PartitionSpec("data", None),
        jnp.tanh,
        linen.relu,
        linen.gelu,
        jnp.add,
        Config,
    ],
)
def test_a_field_arrives_equal(value: Any) -> None:
    assert crossed(value) == value


def test_an_array_field_arrives_with_its_values_and_dtype() -> None:
    arrived = crossed(np.arange(3, dtype=np.int8))
    assert arrived.dtype == np.int8
    assert arrived.tolist() == [0, 1, 2]


def test_an_array_field_has_values_where_its_module_is_built_in_a_trace() -> None:
    description = describe(Holder(jnp.arange(3)), (X,), same_process=False)

    @jax.jit
    def built(key: Any) -> Any:
        return jnp.asarray(np.asarray(build(description, nnx.Rngs(key), root=Twin).seen[0]))

    assert built(jax.random.key(0)).tolist() == [0, 1, 2]


def test_a_mesh_arrives_over_the_same_devices() -> None:
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
    assert crossed(mesh) == mesh


def test_a_partial_of_a_function_keeps_its_arguments() -> None:
    arrived = crossed(functools.partial(linen.softmax, axis=0))
    assert (arrived.func, arrived.keywords) == (jax.nn.softmax, {"axis": 0})


def test_an_initialiser_closure_computes_the_same_values() -> None:
    original = linen.initializers.variance_scaling(2.0, "fan_in", "normal")
    key = jax.random.key(3)
    same = np.array_equal(crossed(original)(key, (4, 5)), original(key, (4, 5)))
    assert same


def test_a_recursive_local_function_arrives_whole() -> None:
    def count(n: int) -> int:
        return 0 if n == 0 else 1 + count(n - 1)

    assert crossed(count)(4) == 4


@pytest.mark.parametrize(
    ("wrapped", "rules"),
    [
        (linen.with_partitioning(linen.initializers.ones, ("in", "out")), ("in", "out")),
        (linen.with_logical_partitioning(linen.initializers.ones, ("in", "out")), None),
    ],
)
def test_a_partitioned_initialiser_becomes_that_of_rewritten_code(wrapped: Any, rules: Any) -> None:
    metadata = nnx.Param(crossed(wrapped)(jax.random.key(0), (2, 3))).get_metadata()
    assert metadata["logical_axes"] == ("in", "out")
    own = metadata.get("logical_axis_rules")
    assert own == (rules and tuple((name, name) for name in rules))


def test_a_linen_layer_class_becomes_its_factory() -> None:
    from nnx_migrate.nn import factory

    arrived = crossed(functools.partial(linen.Conv, use_bias=False))
    assert arrived.func is factory.Conv
    assert arrived.keywords == {"use_bias": False}


def test_a_module_field_is_built_with_its_own_traced_size() -> None:
    class Block(linen.Module):
        inner: linen.Module
        more: tuple[linen.Module, ...]

        def __call__(self, x):
            for layer in self.more:
                x = layer(x)
            return self.inner(x)

    class NewBlock(nnx.Module):
        def __init__(self, inner: nnx.Module, more: tuple[nnx.Module, ...], *, rngs: nnx.Rngs):
            self.inner, self.more_0, self.more_1 = inner, *more

    module = Block(linen.Dense(3), (linen.Dense(5), linen.Dense(6, use_bias=False)))
    built = instantiate(NewBlock, module, (X,), nnx.Rngs(0))
    shapes = [built.more_0.kernel.shape, built.more_1.kernel.shape, built.inner.kernel.shape]
    assert shapes == [(7, 5), (5, 6), (6, 3)]
    assert built.more_1.bias is None


def test_one_module_in_two_fields_stays_one_module() -> None:
    class Tied(linen.Module):
        left: linen.Module
        right: linen.Module

        def __call__(self, x):
            return self.left(x) + self.right(x)

    class NewTied(nnx.Module):
        def __init__(self, left: nnx.Module, right: nnx.Module, *, rngs: nnx.Rngs):
            self.left, self.right = left, right

    shared = linen.Dense(7)
    built = instantiate(NewTied, Tied(shared, shared), (X,), nnx.Rngs(0))
    assert built.left is built.right


def test_sizes_are_named_after_the_call_arguments() -> None:
    class Two(linen.Module):
        def __call__(self, queries, keys, train=True):
            return queries @ keys.T

    class NewTwo(nnx.Module):
        def __init__(self, *, queries_features: int, keys_shape: tuple[int, ...], rngs: nnx.Rngs):
            self.seen = (queries_features, keys_shape)

    keys = np.ones((4, 7), np.float32)
    built = instantiate(NewTwo, Two(), (X,), nnx.Rngs(0), kwargs={"keys": keys, "train": False})
    assert built.seen == (7, (4, 7))


def test_the_map_says_which_dimension_a_size_is_and_what_a_field_is_called() -> None:
    class NewHolder(nnx.Module):
        def __init__(self, content: Any, *, rows: int, hidden: int, rngs: nnx.Rngs):
            self.seen = (content, rows, hidden)

    name = f"{Holder.__module__}.Holder"
    entry = ClassMap(
        linen=name,
        nnx=name,
        fields={"value": "content"},
        size_arguments=(
            SizeArgument("rows", argument="x", axis=0),
            SizeArgument("hidden", submodule="Dense_0"),
        ),
    )
    built = instantiate(
        NewHolder, Holder("kept"), (X,), nnx.Rngs(0), map=MigrationMap(classes=(entry,))
    )
    assert built.seen == ("kept", 2, 7)


def test_the_initial_call_may_be_another_method() -> None:
    class Coder(linen.Module):
        def encode(self, tokens):
            return tokens

    class NewCoder(nnx.Module):
        def __init__(self, *, tokens_features: int, rngs: nnx.Rngs):
            self.size = tokens_features

    assert instantiate(NewCoder, Coder(), (X,), nnx.Rngs(0), method="encode").size == 7


def test_a_default_is_left_to_the_migrated_class() -> None:
    class NewHolder(nnx.Module):
        def __init__(self, *, in_features: int, rngs: nnx.Rngs):
            self.size = in_features

    assert instantiate(NewHolder, Holder(), (X,), nnx.Rngs(0)).size == 7


def test_local_functions_and_classes_are_kept_by_identity_in_one_process() -> None:
    class Local:
        pass

    function: Callable[[Any], Any] = lambda x: x
    arrived = crossed((function, Local), same_process=True)
    assert arrived == (function, Local)


def test_a_field_that_cannot_cross_asks_for_nnx() -> None:
    with pytest.raises(CannotCross, match=r"field 'value' of .*Holder .*define nnx\(rngs\)"):
        crossed(iter(open.__name__ for _ in range(1)))


def test_a_class_defined_inside_a_function_is_made_again_from_its_source() -> None:
    class Local:
        size = 3

    arrived = crossed(Local())
    assert type(arrived).__qualname__ == Local.__qualname__
    assert (type(arrived) is Local, arrived.size) == (False, 3)


@pytest.mark.parametrize("size", [3])
def test_a_class_that_reads_the_arguments_of_its_function_cannot_cross(size: int) -> None:
    class Local:
        width = size

    with pytest.raises(NotAlone, match="it reads size"):
        crossed(Local())


def test_a_constructor_without_the_field_is_refused() -> None:
    class NewHolder(nnx.Module):
        def __init__(self, width: int = 1, *, rngs: nnx.Rngs):
            pass

    with pytest.raises(CannotCross, match=r"takes no value \(it takes width, rngs\)"):
        instantiate(NewHolder, Holder(3), (X,), nnx.Rngs(0))


def test_a_size_that_no_call_shows_is_refused() -> None:
    class NewHolder(nnx.Module):
        def __init__(self, *, memory_features: int, rngs: nnx.Rngs):
            pass

    with pytest.raises(CannotCross, match=r"does not show .* memory_features"):
        instantiate(NewHolder, Holder(), (X,), nnx.Rngs(0))


def test_a_class_that_is_still_linen_is_refused() -> None:
    with pytest.raises(CannotCross, match="still a Linen class"):
        build(describe(Holder(), (X,)), nnx.Rngs(0))


def test_a_linen_class_without_counterpart_is_refused() -> None:
    with pytest.raises(CannotCross, match=r"flax.linen.Fp8DirectDotGeneralOp has no counterpart"):
        crossed(linen.Fp8DirectDotGeneralOp)


def test_a_constructor_that_forwards_keywords_takes_its_bases_arguments() -> None:
    class Base(nnx.Module):
        def __init__(self, value: Any = None, *, in_features: int, rngs: nnx.Rngs):
            self.seen = (value, in_features)

    class NewHolder(Base):
        def __init__(self, **kwargs: Any):
            super().__init__(**kwargs)

    assert instantiate(NewHolder, Holder("kept"), (X,), nnx.Rngs(0)).seen == ("kept", 7)


def test_a_dict_that_linen_froze_arrives_as_a_dict() -> None:
    arrived = crossed({"a": {"b": 1}})
    assert (type(arrived), type(arrived["a"])) == (dict, dict)


@pytest.mark.parametrize(("widths", "expected"), [((4, 4), {"in_features": 4}), ((4, 5), {})])
def test_modules_without_a_scope_path_need_one_answer_of_their_class(
    widths: tuple[int, int], expected: dict[str, int]
) -> None:
    name = "flax.linen.linear.Dense"
    calls = [
        Call((f"Dense_{index}",), name, "__call__", (("inputs", (2, width)),))
        for index, width in enumerate(widths)
    ]
    sizes, missing = sizes_for(Twin, ("value",), None, calls, None, name)
    assert sizes == expected
    assert missing == (() if expected else ("in_features",))


def test_a_case_may_name_the_migrated_class() -> None:
    class Scale(linen.Module):
        factor: float

        @linen.compact
        def __call__(self, x, *, shift):
            return linen.Dense(3)(x * self.factor + shift[None])

    class NewScale(nnx.Module):
        def __init__(self, factor: float, *, shift_shape: Any, in_features: int, rngs: nnx.Rngs):
            self.factor = factor
            self.Dense_0 = nnx.Linear(in_features, 3, rngs=rngs)

        def __call__(self, x, *, shift):
            return self.Dense_0(x * self.factor + shift[None])

    case = ParityCase(linen=Scale(2.0), nnx=NewScale, inputs=(X,), kwargs={"shift": X[0]})
    report = check(case)
    assert report.ok, report.summary()


def test_a_case_whose_class_cannot_be_built_is_a_bad_case() -> None:
    class NewHolder(nnx.Module):
        def __init__(self, *, memory_features: int, rngs: nnx.Rngs):
            pass

    with pytest.raises(BadCase, match="memory_features"):
        check(ParityCase(linen=Holder(), nnx=NewHolder, inputs=(X,)))
