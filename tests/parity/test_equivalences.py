"""Every published equivalence: both forms are the same by that rule, and give the same bits."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from nnx_migrate.parity.programs import graphs
from nnx_migrate.parity.programs.equivalences import DATAFLOW, RULES, STRUCTURAL
from nnx_migrate.parity.values import same_bits, to_host

# Values whose bits a careless rule would change: both zeros, infinities, NaN, a denormal.
HARD = np.array([-0.0, 0.0, np.inf, -np.inf, np.nan, 1e-40, -1.5, 3.0], np.float32)
COLUMN = HARD.reshape(8, 1)
ROW = HARD.reshape(1, 8)
PAIR = HARD.reshape(2, 4)
# Values that no careless rule could map to each other, for programs that must differ.
TAME = np.array([0.5, 1.25, -2.0, 3.0, 4.1, -5.3, 6.7, 7.9], np.float32).reshape(2, 4)


def loop(swapped):
    def run(x):
        def body(carry):
            i, a, b = (carry[0], carry[2], carry[1]) if swapped else carry
            a, b = a * 2 + b, b + 1
            return (i + 1, b, a) if swapped else (i + 1, a, b)

        start = (0, x + 1, x) if swapped else (0, x, x + 1)
        end = lax.while_loop(lambda carry: carry[0] < 3, body, start)
        return end[2] if swapped else end[1]

    return run


def barrier(x):
    one, other = lax.optimization_barrier((x, x * 2))
    return one + other


def barrier_swapped(x):
    other, one = lax.optimization_barrier((x * 2, x))
    return one + other


def double(x):
    return jnp.sin(x) * 2


PAIRS = {
    "reshape_identity": (lambda x: x.reshape(8).reshape(2, 4), lambda x: x, PAIR),
    "splat_constant": (
        lambda x: x + lax.broadcast_in_dim(np.float32(1.5), (2, 4), ()),
        lambda x: x + np.full((2, 4), 1.5, np.float32),
        PAIR,
    ),
    "broadcast_as_reshape": (
        lambda x: lax.broadcast_in_dim(x, (2, 1, 4), (0, 2)),
        lambda x: x.reshape(2, 1, 4),
        PAIR,
    ),
    "broadcast_of_broadcast": (
        lambda x: lax.broadcast_in_dim(
            lax.broadcast_in_dim(x, (3, 2, 4), (1, 2)), (5, 3, 2, 4), (1, 2, 3)
        ),
        lambda x: lax.broadcast_in_dim(x, (5, 3, 2, 4), (2, 3)),
        PAIR,
    ),
    "broadcast_of_units": (
        lambda x: lax.broadcast_in_dim(x, (8, 3), (0, 1)),
        lambda x: lax.broadcast_in_dim(x.reshape(8), (8, 3), (0,)),
        COLUMN,
    ),
    "transpose_identity": (lambda x: x.T, lambda x: x.reshape(8, 1), ROW),
    "transpose_of_transpose": (lambda x: x.T.T + x, lambda x: x + x, PAIR),
    "reduce_unit_axes": (lambda x: jnp.sum(x, axis=1), lambda x: x.reshape(8), COLUMN),
    "commuted_operands": (lambda x: x + jnp.sin(x), lambda x: jnp.sin(x) + x, PAIR),
    "barrier_operands": (barrier, barrier_swapped, PAIR),
    "private_functions": (jax.jit(double), double, PAIR),
    "loop_carries": (loop(False), loop(True), PAIR),
}
# Rules that only ever fire together with another one are seen in the company they need.
COMPANY = {
    "transpose_of_transpose": {"transpose_identity"},
    "broadcast_of_units": {"reshape_identity"},
    "reduce_unit_axes": {"reshape_identity"},
}


def text(function, *values):
    return jax.jit(function).lower(*values).as_text()


@pytest.mark.parametrize("rule", PAIRS)
def test_two_forms_of_a_value_are_the_same_by_the_rule(rule):
    left, right, value = PAIRS[rule]
    found = graphs.equal_by_rules(text(left, value), text(right, value))
    assert found is not None
    assert found[0] == DATAFLOW
    assert rule in found
    assert set(found) - {DATAFLOW, rule} <= COMPANY.get(rule, set())


@pytest.mark.parametrize("rule", PAIRS)
def test_two_forms_of_a_value_have_the_same_bits(rule):
    left, right, value = PAIRS[rule]
    one, other = jax.jit(left)(value), jax.jit(right)(value)
    assert same_bits(to_host(one), to_host(other))


def test_a_conversion_to_the_same_type_is_the_value():
    module = """
    module {{ func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {{
      {body}
    }} }}"""
    converted = module.format(
        body="%0 = stablehlo.convert %arg0 : (tensor<2xf32>) -> tensor<2xf32>\n return %0 : tensor<2xf32>"
    )
    bare = module.format(body="return %arg0 : tensor<2xf32>")
    assert graphs.equal_by_rules(converted, bare) == (DATAFLOW, "convert_identity")
    value = jnp.asarray(HARD)
    assert same_bits(to_host(jax.jit(lambda x: x.astype(jnp.float32))(value)), HARD)


def test_every_rule_has_a_pair_and_a_near_miss():
    assert set(PAIRS) | {"convert_identity"} == {*RULES, *STRUCTURAL}
    assert NEAR_MISSES.keys() == {*RULES, *STRUCTURAL, DATAFLOW}
    assert all(NEAR_MISSES.values())


def test_order_of_independent_operations_and_unused_results_do_not_count():
    def one(x):
        a = jnp.sin(x)
        b = jnp.cos(x)
        return a - b

    def other(x):
        b = jnp.cos(x)
        a = jnp.sin(x)
        return a - b

    assert graphs.equal_by_rules(text(one, PAIR), text(other, PAIR)) == (DATAFLOW,)


def nested_loops(swapped, step=1):
    """A loop before or after one in a loop, which carries its values in either order."""

    def alone(x):
        return lax.fori_loop(0, 2, lambda i, c: jnp.sin(c), x)

    def inner(a, b):
        def body(carry):
            i, a, b = (carry[0], carry[2], carry[1]) if swapped else carry
            a, b = a * b, b + step
            return (i + 1, b, a) if swapped else (i + 1, a, b)

        start = (0, b, a) if swapped else (0, a, b)
        return lax.while_loop(lambda carry: carry[0] < 3, body, start)[2 if swapped else 1]

    def outer(x):
        return lax.fori_loop(0, 2, lambda i, c: inner(c, c + 1), x)

    def run(x):
        if swapped:
            before = alone(x)
            return outer(x), before
        return outer(x), alone(x)

    return run


def test_order_of_loops_in_a_loop_does_not_count():
    one, other = text(nested_loops(False), PAIR), text(nested_loops(True), PAIR)
    assert graphs.equal_by_rules(one, other) == (DATAFLOW, "loop_carries")


PRINTS = "stablehlo.custom_call @prints() {has_side_effect = true} : () -> ()\n"


@pytest.mark.parametrize(("within", "is_same"), [("", True), (PRINTS, False)])
def test_a_map_without_results_counts_by_what_it_does_within(within, is_same):
    """A shard_map of what nobody uses is left empty, in loops too."""
    loops = text(nested_loops(False), PAIR), text(nested_loops(True), PAIR)
    head = "sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {\n"
    mapped = f"}} do {{\n{head}{within}sdy.return\n}} : () -> ()\n"
    found = graphs.equal_by_rules(loops[0].replace("} do {\n", mapped), loops[1])
    assert found == ((DATAFLOW, "loop_carries") if is_same else None)


def shifted_loop(start):
    def run(x):
        return lax.while_loop(
            lambda carry: carry[0] < 3, lambda carry: (carry[0] + 1, carry[1] * 2), (start, x)
        )[1]

    return run


def crossed_loop(crossed):
    def run(x):
        def body(carry):
            i, a, b = carry
            a, b = jnp.sin(a), jnp.cos(b)
            return (i + 1, b, a) if crossed else (i + 1, a, b)

        return lax.while_loop(lambda carry: carry[0] < 3, body, (0, x, x + 1))[1]

    return run


def many(x):
    return lax.fori_loop(0, 4, lambda i, c: c + i, x)


def cube(x):
    return x.reshape(2, 2, 2)


def crossed_barrier(x):
    other, one = lax.optimization_barrier((x, x * 2))
    return one - other


def straight_barrier(x):
    one, other = lax.optimization_barrier((x, x * 2))
    return one - other


def narrow_barrier(x):
    return lax.optimization_barrier(x) - x * 2


minus = jax.jit(lambda x, y: x - y)

# By rule: pairs that the rule must leave apart, though they have the operations that it is about.
NEAR_MISSES = {
    "reshape_identity": {
        "a reshape and a transpose": (lambda x: x.reshape(4, 2), lambda x: x.T),
        "a reshape of what is transposed": (lambda x: x.T.reshape(2, 4), lambda x: x),
    },
    "splat_constant": {
        "a constant": (lambda x: x * 1.5, lambda x: x * 1.25),
        "a constant in a loop": (
            lambda x: lax.fori_loop(0, 4, lambda i, c: c + 1.5, x),
            lambda x: lax.fori_loop(0, 4, lambda i, c: c + 1.25, x),
        ),
        "the sign of a zero": (
            lambda x: x * lax.broadcast_in_dim(np.float32(0), (2, 4), ()),
            lambda x: x * np.full((2, 4), -0.0, np.float32),
        ),
        "one value of many": (
            lambda x: x * lax.broadcast_in_dim(np.float32(1.5), (2, 4), ()),
            lambda x: x * np.array([[1.5] * 4, [1.5] * 3 + [1.25]], np.float32),
        ),
    },
    "broadcast_as_reshape": {
        "which axis stays": (
            lambda x: lax.broadcast_in_dim(x[:, 0], (2, 1, 2), (0,)),
            lambda x: lax.broadcast_in_dim(x[:, 0], (2, 1, 2), (2,)),
        ),
        "values that are repeated": (
            lambda x: lax.broadcast_in_dim(x[:, :2], (2, 2, 2), (0, 2)),
            lambda x: lax.reshape(x, (2, 2, 2)),
        ),
    },
    "broadcast_of_broadcast": {
        "the axis of the first": (
            lambda x: lax.broadcast_in_dim(
                lax.broadcast_in_dim(x[:, :2], (2, 2, 2), (0, 1)), (3, 2, 2, 2), (1, 2, 3)
            ),
            lambda x: lax.broadcast_in_dim(x[:, :2], (3, 2, 2, 2), (1, 3)),
        ),
        "the axis of the second": (
            lambda x: lax.broadcast_in_dim(
                lax.broadcast_in_dim(x[:, 0], (2, 2), (0,)), (2, 2, 2), (0, 2)
            ),
            lambda x: lax.broadcast_in_dim(x[:, 0], (2, 2, 2), (1,)),
        ),
        "an operation between them": (
            lambda x: lax.broadcast_in_dim(
                jnp.sin(lax.broadcast_in_dim(x, (3, 2, 4), (1, 2))), (5, 3, 2, 4), (1, 2, 3)
            ),
            lambda x: lax.broadcast_in_dim(x, (5, 3, 2, 4), (2, 3)),
        ),
    },
    "broadcast_of_units": {
        "the axis of a broadcast": (
            lambda x: lax.broadcast_in_dim(x.reshape(8), (8, 8), (0,)),
            lambda x: lax.broadcast_in_dim(x.reshape(8), (8, 8), (1,)),
        ),
        "on which side the unit axis is": (
            lambda x: lax.broadcast_in_dim(x.reshape(8, 1), (8, 8), (0, 1)),
            lambda x: lax.broadcast_in_dim(x.reshape(1, 8), (8, 8), (0, 1)),
        ),
        "a unit axis among others": (
            lambda x: lax.broadcast_in_dim(x.reshape(2, 1, 4)[..., :2], (2, 2, 2), (0, 1, 2)),
            lambda x: lax.broadcast_in_dim(x.reshape(2, 4, 1)[:, :2], (2, 2, 2), (0, 1, 2)),
        ),
    },
    "transpose_identity": {
        "a transpose around a unit axis": (
            lambda x: x.reshape(2, 1, 4).transpose(2, 1, 0),
            lambda x: x.reshape(4, 1, 2),
        ),
        "axes of one size": (lambda x: cube(x).transpose(1, 0, 2), cube),
    },
    "transpose_of_transpose": {
        "which of two is first": (
            lambda x: cube(x).transpose(1, 0, 2).transpose(0, 2, 1),
            lambda x: cube(x).transpose(0, 2, 1).transpose(1, 0, 2),
        ),
        "a turn twice": (lambda x: cube(x).transpose(1, 2, 0).transpose(1, 2, 0), cube),
        "a turn twice and once": (
            lambda x: cube(x).transpose(1, 2, 0).transpose(1, 2, 0),
            lambda x: cube(x).transpose(1, 2, 0),
        ),
    },
    "convert_identity": {
        "a conversion and back": (
            lambda x: x.astype(jnp.bfloat16).astype(jnp.float32),
            lambda x: x,
        ),
        "the dtype of the arithmetic": (
            lambda x: x * x,
            lambda x: (x.astype(jnp.bfloat16) * x.astype(jnp.bfloat16)).astype(jnp.float32),
        ),
    },
    "reduce_unit_axes": {
        "the axis of a sum": (
            lambda x: jnp.sum(cube(x), axis=0),
            lambda x: jnp.sum(cube(x), axis=1),
        ),
        "a sum and a maximum over one element": (
            lambda x: jnp.sum(x.reshape(8, 1), axis=1),
            lambda x: lax.reduce(x.reshape(8, 1), np.float32(0), lax.max, (1,)),
        ),
        "a sum that does not start at zero": (
            lambda x: lax.reduce(x.reshape(8, 1), np.float32(1), lax.add, (1,)),
            lambda x: x.reshape(8),
        ),
        "an axis that is no unit": (
            lambda x: jnp.sum(x.reshape(2, 1, 4), axis=(1, 2)),
            lambda x: jnp.sum(x.reshape(4, 1, 2), axis=(1, 2))[:2],
        ),
    },
    "commuted_operands": {
        "operands of a subtraction": (lambda x: x - jnp.sin(x), lambda x: jnp.sin(x) - x),
        "operands of a division": (
            lambda x: (x + 1) / (x + 2),
            lambda x: (x + 2) / (x + 1),
        ),
        "a maximum and a minimum": (
            lambda x: lax.max(x, jnp.sin(x)),
            lambda x: lax.min(jnp.sin(x), x),
        ),
        "association": (lambda x: (x + 1.7) + jnp.cos(x), lambda x: x + (1.7 + jnp.cos(x))),
    },
    "barrier_operands": {
        "which result is used": (straight_barrier, crossed_barrier),
        "which values a barrier takes": (straight_barrier, narrow_barrier),
    },
    "private_functions": {
        "the arguments of a call": (
            lambda x: minus(x, jnp.sin(x)),
            lambda x: minus(jnp.sin(x), x),
        ),
        "what a function computes": (jax.jit(double), lambda x: jnp.sin(x) * 3),
    },
    "loop_carries": {
        "the start of a loop": (shifted_loop(0), shifted_loop(1)),
        "values that change places in a loop": (crossed_loop(False), crossed_loop(True)),
        "a step of a loop in a loop": (nested_loops(False), nested_loops(True, step=2)),
        "the number of steps": (many, lambda x: lax.fori_loop(0, 5, lambda i, c: c + i, x)),
    },
    DATAFLOW: {
        "the order of results": (lambda x: (x, x + 1), lambda x: (x + 1, x)),
    },
}
# Other programs that have the same bits here: they say where, when and how values are computed.
SAME_BITS = {
    "the precision of a product": (
        lambda x: jnp.dot(x, x.T, precision="highest"),
        lambda x: jnp.dot(x, x.T),
    ),
    "a barrier": (lambda x: lax.optimization_barrier(x) + 1, lambda x: x + 1),
}
WITHOUT_OTHER_BITS = {
    "which values a barrier takes",
    # XLA takes it that no reduction's start changes anything, and reads one of one element as that.
    "a sum and a maximum over one element",
    "a sum that does not start at zero",
}
APART = {
    difference: pair
    for differences in NEAR_MISSES.values()
    for difference, pair in differences.items()
}
OPERATIONS = {
    **{name: rule.ops for name, rule in RULES.items()},
    "private_functions": {"func.call"},
    "loop_carries": {"stablehlo.while"},
}


@pytest.mark.parametrize("difference", [*APART, *SAME_BITS])
def test_programs_that_differ_are_not_equal(difference):
    left, right = {**APART, **SAME_BITS}[difference]
    assert graphs.equal_by_rules(text(left, PAIR), text(right, PAIR)) is None


@pytest.mark.parametrize("difference", sorted(APART.keys() - WITHOUT_OTHER_BITS))
def test_what_a_rule_leaves_apart_has_other_bits(difference):
    left, right = APART[difference]
    one, other = jax.jit(left)(TAME), jax.jit(right)(TAME)
    assert not all(
        same_bits(to_host(a), to_host(b))
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


@pytest.mark.parametrize("rule", [*RULES, *STRUCTURAL])
def test_every_rule_leaves_apart_programs_with_its_operations(rule):
    names = [name.removeprefix("func.") for name in OPERATIONS[rule]]
    texts = [text(one, PAIR) for pair in NEAR_MISSES[rule].values() for one in pair]
    assert any(re.search(rf"\b{re.escape(name)}\b", one) for name in names for one in texts)


MODULE = """
module {{ func.func public @main(%arg0: tensor<2x2x2xf32>, %arg1: tensor<f32>) -> {type} {{
  {body}
}} }}"""
# What jax does not write, but StableHLO has: axes of a broadcast in any order, captured values.
SUM = """%zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.slice %arg0 [0:2, 0:2, 0:1] : (tensor<2x2x2xf32>) -> tensor<2x2x1xf32>
  %1 = stablehlo.reduce(%0 init: %zero) across dimensions = [2] : (tensor<2x2x1xf32>, tensor<f32>) -> tensor<2x2xf32>
   reducer(%a: tensor<f32>, %b: tensor<f32>) {{
    %2 = stablehlo.add {left}, {right} : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }}
  return %1 : tensor<2x2xf32>"""
CROSSED = """%0 = stablehlo.broadcast_in_dim %arg0, dims = {inner} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = {outer} : (tensor<2x2x2xf32>) -> tensor<5x2x2x2xf32>
  return %1 : tensor<5x2x2x2xf32>"""


def crossed(inner, outer):
    return MODULE.format(type="tensor<5x2x2x2xf32>", body=CROSSED.format(inner=inner, outer=outer))


def test_axes_of_two_broadcasts_compose_in_their_order():
    both = crossed([1, 2, 0], [1, 3, 2])
    # Axis i of the operand is axis inner[i] of the first result, so outer[inner[i]] of the last.
    assert graphs.equal_by_rules(both, crossed([0, 1, 2], [3, 2, 1])) is not None
    # inner[outer[i] - 1], the other order, is another program.
    assert graphs.equal_by_rules(both, crossed([0, 1, 2], [2, 1, 3])) is None


def test_a_sum_of_a_captured_value_is_no_sum_over_one_element():
    captured = MODULE.format(type="tensor<2x2xf32>", body=SUM.format(left="%a", right="%arg1"))
    whole = MODULE.format(type="tensor<2x2xf32>", body=SUM.format(left="%a", right="%b"))
    bare = MODULE.format(
        type="tensor<2x2xf32>",
        body="""%0 = stablehlo.slice %arg0 [0:2, 0:2, 0:1] : (tensor<2x2x2xf32>) -> tensor<2x2x1xf32>
  %1 = stablehlo.reshape %0 : (tensor<2x2x1xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>""",
    )
    assert "reduce_unit_axes" in (graphs.equal_by_rules(whole, bare) or ())
    assert graphs.equal_by_rules(captured, bare) is None


def test_arguments_are_told_apart_by_place():
    assert (
        graphs.equal_by_rules(
            text(lambda x, y: x - y, PAIR, PAIR), text(lambda y, x: x - y, PAIR, PAIR)
        )
        is None
    )


def test_text_that_is_no_module_is_refused():
    with pytest.raises(ValueError, match="not a StableHLO module"):
        graphs.equal_by_rules("module {", "module { }")
