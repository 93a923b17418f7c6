"""Recurrent cells and loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from tests.linen.layers.comparison import (
    assert_same_bits,
    assert_same_error,
    assert_same_text,
    evaluate,
    floats,
    pair,
)

R = "recurrent."
OTHER = "gate_fn=activation.hard_sigmoid, activation_fn=activation.relu"
CELLS = {
    "lstm": f"{R}LSTMCell(4)",
    "lstm other": f"{R}LSTMCell(4, {OTHER}, dtype=jnp.bfloat16, bias_init=initializers.ones)",
    "optimized": f"{R}OptimizedLSTMCell(4)",
    "optimized other": f"{R}OptimizedLSTMCell(4, {OTHER}, dtype=jnp.bfloat16)",
    "simple": f"{R}SimpleCell(4)",
    "simple residual": f"{R}SimpleCell(4, residual=True, dtype=jnp.bfloat16)",
    "gru": f"{R}GRUCell(4)",
    "gru other": f"{R}GRUCell(4, {OTHER}, carry_init=initializers.ones)",
    "mgu": f"{R}MGUCell(4)",
    "mgu without reset": f"{R}MGUCell(4, reset_gate=False, dtype=jnp.bfloat16)",
    "conv": f"{R}ConvLSTMCell(4, (3,))",
    "conv 2d": f"{R}ConvLSTMCell(4, (3, 2), strides=1, padding='SAME', use_bias=False)",
}


def input_shape(case: str) -> tuple[int, ...]:
    return {"conv": (2, 6, 3), "conv 2d": (2, 5, 6, 3)}.get(case, (2, 3))


@pytest.mark.parametrize("case", CELLS)
def test_a_cell_is_the_same_program(case):
    shape = input_shape(case)
    linen, lazy = evaluate(CELLS[case])
    assert linen.num_feature_axes == lazy.num_feature_axes
    carries = [
        jax.jit(lambda key, cell=cell: cell.initialize_carry(key, shape))(jax.random.key(0))
        for cell in (linen, lazy)
    ]
    assert_same_bits(*carries)
    pair(CELLS[case], carries[0], floats(*shape)).check_programs()


@pytest.mark.parametrize("case", ["lstm", "optimized", "gru", "mgu", "conv"])
def test_a_cell_gives_the_same_bits(case):
    shape = input_shape(case)
    carry = evaluate(CELLS[case])[0].initialize_carry(jax.random.key(0), shape)
    pair(CELLS[case], carry, floats(*shape)).check_numbers()


def test_the_gates_are_as_wide_as_the_carry():
    carry = (floats(2, 5), floats(2, 5))
    pair(CELLS["lstm"], carry, floats(2, 3)).check_programs()


LOOPS = {
    "plain": (f"{R}RNN({CELLS['lstm']})", {}),
    "carry": (f"{R}RNN({CELLS['gru']}, return_carry=True, unroll=2)", {}),
    "reverse": (f"{R}RNN({CELLS['gru']}, reverse=True)", {}),
    "reverse in order": (f"{R}RNN({CELLS['gru']}, reverse=True, keep_order=True)", {}),
    "time major": (f"{R}RNN({CELLS['simple']}, time_major=True)", {}),
    "lengths": (
        f"{R}RNN({CELLS['lstm']}, return_carry=True)",
        {"seq_lengths": jnp.array([3, 1])},
    ),
    "lengths reversed": (
        f"{R}RNN({CELLS['gru']})",
        {"seq_lengths": jnp.array([3, 1]), "reverse": True, "keep_order": True},
    ),
    "lengths reversed time major": (
        f"{R}RNN({CELLS['gru']})",
        {"seq_lengths": jnp.array([3, 1, 1]), "reverse": True, "time_major": True},
    ),
    "initial carry": (f"{R}RNN({CELLS['gru']})", {"initial_carry": floats(2, 4)}),
    "key": (
        f"{R}RNN({R}GRUCell(4, carry_init=initializers.normal()))",
        {"init_key": jax.random.key(7), "return_carry": True},
    ),
    "both": (f"{R}Bidirectional({R}RNN({CELLS['gru']}), {R}RNN({CELLS['lstm']}))", {}),
    "both summed": (
        f"{R}Bidirectional({R}RNN({CELLS['gru']}), {R}RNN({CELLS['gru']}), merge_fn=jnp.add)",
        {"seq_lengths": jnp.array([3, 1]), "return_carry": True},
    ),
    "both with keys": (
        f"{R}Bidirectional({R}RNN({CELLS['gru']}), {R}RNN({CELLS['gru']}), return_carry=True)",
        {"init_key": jax.random.key(7)},
    ),
    "both with carries": (
        f"{R}Bidirectional({R}RNN({CELLS['gru']}), {R}RNN({CELLS['gru']}))",
        {"initial_carry": (floats(2, 4), floats(2, 4))},
    ),
}


@pytest.mark.parametrize("case", LOOPS)
def test_a_loop_is_the_same_program(case):
    expression, options = LOOPS[case]
    pair(expression, floats(2, 3, 5), **options).check_programs()


@pytest.mark.parametrize("case", ["plain", "lengths", "both"])
def test_a_loop_gives_the_same_bits(case):
    expression, options = LOOPS[case]
    pair(expression, floats(2, 3, 5), **options).check_numbers()


def test_a_loop_over_images():
    pair(f"{R}RNN({CELLS['conv']})", floats(2, 3, 6, 2)).check_programs()


STATEFUL = """
class Cell(recurrent.RNNCellBase):
    @compact
    def __call__(self, carry, x):
        steps = self.variable("state", "steps", lambda: jnp.zeros(()))
        steps.value = steps.value + 1
        noise = jax.random.normal(self.make_rng("dropout"), x.shape)
        carry = linear.Dense(4)(x) + carry + noise.sum(-1, keepdims=True)
        return carry, carry
    @nowrap
    def initialize_carry(self, rng, input_shape):
        return jnp.zeros((*input_shape[:-1], 4))
    @property
    def num_feature_axes(self):
        return 1
"""


@pytest.mark.parametrize("split", [True, False])
def test_state_and_keys_go_through_the_loop(split):
    expression = f"{R}RNN(Cell(), variable_axes={{'state': 0}}, split_rngs={{'params': False, 'dropout': {split}}})"
    found = pair(expression, floats(2, 3, 5), source=STATEFUL, mutable=["state"])
    found.check_programs()
    _, (_, changed) = found.check_numbers()
    assert changed["state"]["cell"]["steps"].tolist() == [2, 2, 2]


def test_two_directions_may_share_a_loop():
    source = f"""
SHARED = {R}RNN({CELLS["gru"]})
"""
    pair(f"{R}Bidirectional(SHARED, SHARED)", floats(2, 3, 5), source=source).check_programs()


@pytest.mark.parametrize(
    ("lengths", "batch_dims", "time_major"),
    [
        (None, 1, False),
        ((3, 1), 1, False),
        (None, 1, True),
        ((2, 3, 1), 1, True),
        (((3, 1, 2),) * 2, 2, False),
    ],
)
def test_sequences_are_flipped_alike(lengths, batch_dims, time_major):
    lengths = None if lengths is None else jnp.array(lengths)
    linen, lazy = evaluate(f"{R}flip_sequences")
    flip = lambda function: lambda x: function(x, lengths, batch_dims, time_major)
    assert_same_text(flip(linen), flip(lazy), floats(2, 3, 4))


@pytest.mark.parametrize(
    "expression",
    [
        "recurrent.RNNCellBase().initialize_carry(jax.random.key(0), (2, 3))",
        "recurrent.RNNCellBase().num_feature_axes",
        "recurrent.RNN()",
        "recurrent.LSTMCell(4).init(jax.random.key(0), jnp.ones((2, 4)), jnp.ones((2, 3)))",
        "recurrent.GRUCell(4).initialize_carry(None)",
    ],
)
def test_what_linen_refuses_is_refused(expression):
    assert_same_error(expression)
