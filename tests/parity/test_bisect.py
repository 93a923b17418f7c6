"""Where two models part: which call is named, of what loops run above all."""

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate.parity import ParityCase
from nnx_migrate.parity.evaluation.results import SubmoduleOutput
from nnx_migrate.parity.sides.bisect import first_difference
from nnx_migrate.parity.sides.linen import evaluate_linen
from nnx_migrate.parity.sides.nnx import evaluate_nnx

ONE = np.arange(6, dtype=np.float32).reshape(2, 3)
X = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)


class LinenBlock(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        h = nn.Dense(4, name="first")(x)
        h = nn.Dense(4, name="second")(h) + nn.Dense(4, name="third")(h)
        return x + jnp.tanh(h), None


class LinenGroup(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        x = nn.Dense(4, name="before")(x)
        return repeated(LinenBlock, 3)(name="blocks")(x, None)


class LinenStack(nn.Module):
    nested: bool = False

    @nn.compact
    def __call__(self, x):
        inner = LinenGroup if self.nested else LinenBlock
        x, _ = repeated(inner, 2)(name="layers")(x, None)
        return nn.Dense(4, name="after")(x)


def repeated(block, length):
    return nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=length)


class Faulty(nnx.Linear):
    def __call__(self, x):
        return 2 * (x @ self.kernel[...] + self.bias[...][None])


def linear(name, fault, rngs):
    return (Faulty if name == fault else nnx.Linear)(4, 4, rngs=rngs)


class Block(nnx.Module):
    def __init__(self, fault, *, rngs):
        self.first = linear("first", fault, rngs)
        self.second = linear("second", fault, rngs)
        self.third = linear("third", fault, rngs)

    def __call__(self, x):
        h = self.first(x)
        return x + jnp.tanh(self.second(h) + self.third(h))


def run(blocks, x):
    return nnx.scan(lambda block, x: block(x), in_axes=(0, nnx.Carry), out_axes=nnx.Carry)(
        blocks, x
    )


class Group(nnx.Module):
    def __init__(self, fault, *, rngs):
        self.before = linear("before", fault, rngs)
        self.blocks = many(lambda rngs: Block(fault, rngs=rngs), 3, rngs)

    def __call__(self, x):
        return run(self.blocks, self.before(x))


class Stack(nnx.Module):
    def __init__(self, fault, nested=False, *, rngs):
        inner = Group if nested else Block
        self.layers = many(lambda rngs: inner(fault, rngs=rngs), 2, rngs)
        self.after = linear("after", fault, rngs)

    def __call__(self, x):
        return self.after(run(self.layers, x))


def many(build, length, rngs):
    return nnx.split_rngs(splits=length)(nnx.vmap(build, in_axes=(0,), out_axes=0))(rngs)


def sides(fault, nested=False):
    case = ParityCase(
        linen=LinenStack(nested),
        nnx=lambda rngs: Stack(fault, nested, rngs=rngs),
        inputs=(X,),
    )
    linen = evaluate_linen(case, submodules=True, numbers=False)
    nnx_side = evaluate_nnx(case, submodules=True, numbers=False)
    assert (linen.errors, nnx_side.errors) == ({}, {})
    return linen.submodules, nnx_side.submodules


def named(ours, theirs):
    return (first_difference(ours, theirs, None) or {}).get("path")


def test_a_fault_in_the_second_call_of_a_scanned_layer_is_named_itself():
    assert named(*sides("second")) == "layers/second"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "path"),
    [
        ("first", "layers/first"),
        ("third", "layers/third"),
        ("after", "after"),
        ("none", None),
    ],
)
def test_a_fault_in_or_behind_a_scanned_stack_is_named_itself(fault, path):
    assert named(*sides(fault)) == path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "path"), [("second", "layers/blocks/second"), ("after", "after"), ("none", None)]
)
def test_a_fault_inside_a_loop_in_a_loop_is_named_itself(fault, path):
    assert named(*sides(fault, nested=True)) == path


@pytest.mark.slow
def test_calls_are_recorded_turn_by_turn_of_every_loop():
    block = [f"layers/blocks{one}" for one in ("/first", "/second", "/third", "")]
    turn = ["layers/before", *block * 3, "layers"]
    for side in sides("none", nested=True):
        assert [one.path for one in side] == [*turn * 2, "after", ""]
        assert [one.call for one in side if one.path == block[0]] == list(range(6))


def test_a_stack_that_one_side_calls_around_its_loop_is_passed_over():
    def calls(*values):
        paths = {"layers/norm": values[:2], "layers": values[2:-1], "norm": values[-1:]}
        return tuple(
            SubmoduleOutput(path, call, {"": np.float32([value])})
            for path, numbers in paths.items()
            for call, value in enumerate(numbers)
        )

    assert named(calls(1, 2, 3, 4, 5), calls(1, 2, 4, 5)) is None
    assert named(calls(1, 2, 3, 4, 5), calls(1, 2, 4, 6)) == "norm"


def test_a_layer_may_return_its_output_alone_or_beside_what_a_loop_collects():
    alone, beside = ((SubmoduleOutput("layers", 0, {name: ONE}),) for name in ("", "0"))
    assert named(alone, beside) is None
    assert named(alone, (SubmoduleOutput("layers", 0, {"0": ONE, "1": ONE}),)) == "layers"


def outputs(value):
    return (SubmoduleOutput("layers", 0, {"": value}),)


@pytest.mark.parametrize("other", [ONE[None], ONE[:, None], ONE[..., None]])
def test_axes_of_size_one_are_no_difference(other):
    assert named(outputs(ONE), outputs(other)) is None
    assert first_difference(outputs(ONE), outputs(other * np.float32(1.001)), 0.1) is None
    assert named(outputs(ONE), outputs(other + 1)) == "layers"


@pytest.mark.parametrize(
    "other", [ONE.reshape(3, 2), ONE.reshape(6), ONE[:1], ONE[None, :, :2], ONE.astype(np.float64)]
)
def test_other_shapes_and_dtypes_are_a_difference(other):
    assert named(outputs(ONE), outputs(other)) == "layers"


def sequence(**values):
    return tuple(
        SubmoduleOutput(path.replace("_", "/"), 0, {"": np.float32([value])})
        for path, value in values.items()
    )


def test_a_difference_beyond_rounding_is_named_before_an_earlier_one_of_rounding():
    ours = sequence(first=1.0, second=2.0)
    assert named(ours, sequence(first=1.0 + 2**-22, second=2.5)) == "second"
    assert named(ours, sequence(first=1.0 + 2**-22, second=2.0)) == "first"
    assert named(ours, sequence(first=1.0 + 2**-10, second=2.5)) == "first"


@pytest.mark.parametrize(
    ("held", "path"), [({"block/norm"}, "block/norm"), ({"elsewhere/norm"}, "block"), ((), "block")]
)
def test_a_module_with_variables_that_nnx_never_calls_is_named(held, path):
    ours = sequence(block_first=1.0, block_norm=2.0, elsewhere_norm=2.0, block=3.0)
    theirs = sequence(block_first=1.0, block=4.0)
    found = first_difference(ours, theirs, None, held)
    assert found["path"] == path
    assert (found["nnx"] == "not called") == (path == "block/norm")


def test_a_module_that_nnx_does_not_call_is_no_difference_where_none_is():
    ours = sequence(block_norm=2.0, block=3.0)
    assert first_difference(ours, sequence(block=3.0), None, {"block/norm"}) is None
