"""Recurrent cells and their wrappers against Linen's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx, traverse_util

from nnx_migrate import nn
from tests.nn.oracle import array, assert_same_bits, check, constant_key, nnx_leaves

CELLS = [
    ("LSTMCell", {}),
    ("OptimizedLSTMCell", {}),
    ("GRUCell", {}),
    ("SimpleCell", {}),
    ("SimpleCell", {"residual": True}),
    ("MGUCell", {}),
    ("MGUCell", {"reset_gate": False}),
]
DTYPES = [(None, jnp.float32), (jnp.bfloat16, jnp.float32), (None, jnp.bfloat16)]


def pair(name, fields, features=4, in_features=3):
    """A Linen cell and the builder of ours."""
    if fields.get("param_dtype") == jnp.bfloat16 and name != "ConvLSTMCell":
        # The default, orthogonal, has no bfloat16 QR decomposition on CPU.
        fields = {"recurrent_kernel_init": nnx.initializers.normal(), **fields}
    linen_cell = getattr(linen, name)(features, **fields)
    build = getattr(nn, name)
    return linen_cell, lambda r: build(features, **fields, in_features=in_features, rngs=r)


def carry_of(name, *shape, dtype=jnp.float32):
    pairs = "LSTM" in name
    arrays = [array(*shape, seed=seed, dtype=dtype) for seed in (11, 12)]
    return tuple(arrays) if pairs else arrays[0]


@pytest.mark.parametrize(("dtype", "param_dtype"), DTYPES)
@pytest.mark.parametrize(("name", "fields"), CELLS)
def test_cell_is_linens_program(name, fields, dtype, param_dtype):
    fields = {**fields, "dtype": dtype, "param_dtype": param_dtype}
    linen_cell, build = pair(name, fields)
    check(linen_cell, build, carry_of(name, 2, 4), array(2, 3))


@pytest.mark.parametrize(("name", "fields"), CELLS)
def test_gates_are_as_wide_as_the_hidden_state(name, fields):
    build = getattr(nn, name)
    check(
        getattr(linen, name)(4, **fields),
        lambda r: build(4, **fields, in_features=3, carry_features=5, rngs=r),
        carry_of(name, 2, 5),
        array(2, 3),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fields"), CELLS)
def test_cell_takes_initialisers_and_activations(name, fields):
    fields = {**fields, "activation_fn": jnp.sin}
    fields["kernel_init"] = nnx.initializers.normal(0.3)
    fields["recurrent_kernel_init"] = nnx.initializers.uniform()
    fields["activation_bias_init" if name == "MGUCell" else "bias_init"] = nnx.initializers.normal(
        1.0
    )
    linen_cell, build = pair(name, fields)
    check(linen_cell, build, carry_of(name, 2, 4), array(2, 3))


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "param_dtype"), DTYPES)
@pytest.mark.parametrize(
    "fields",
    [{"kernel_size": (3, 2)}, {"kernel_size": (3, 3), "use_bias": False, "padding": "CIRCULAR"}],
)
def test_conv_lstm_cell_is_linens_program(fields, dtype, param_dtype):
    fields = {**fields, "dtype": dtype, "param_dtype": param_dtype}
    linen_cell, build = pair("ConvLSTMCell", fields)
    check(linen_cell, build, carry_of("ConvLSTMCell", 2, 5, 6, 4), array(2, 5, 6, 3))


@pytest.mark.parametrize(("name", "fields"), [*CELLS, ("ConvLSTMCell", {"kernel_size": (3, 3)})])
def test_initial_carry_is_linens_with_and_without_a_cell(name, fields):
    fields = {**fields, "carry_init": nnx.initializers.normal(), "param_dtype": jnp.bfloat16}
    linen_cell, build = pair(name, fields)
    shape = (2, 5, 6, 3)
    expected = linen_cell.initialize_carry(jax.random.key(3), shape)
    found = build(nnx.Rngs(0)).initialize_carry(jax.random.key(3), shape)
    assert_same_bits(expected, found)
    made = getattr(nn, name).make_carry(jax.random.key(3), shape, features=4, **fields)
    assert_same_bits(expected, made)


def test_cell_base_names_what_a_cell_lacks():
    class Bare(nn.RNNCellBase):
        pass

    with pytest.raises(NotImplementedError, match="Bare defines no initialize_carry"):
        Bare().initialize_carry(jax.random.key(0), (2, 3))
    with pytest.raises(NotImplementedError, match="Bare defines no num_feature_axes"):
        assert Bare().num_feature_axes


RNN_FIELDS = [
    {},
    {"time_major": True},
    {"reverse": True},
    {"reverse": True, "keep_order": True, "unroll": 2},
    {"return_carry": True},
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields"),
    [*[("LSTMCell", fields) for fields in RNN_FIELDS], ("OptimizedLSTMCell", {})],
)
def test_rnn_has_linens_bits(name, fields):
    linen_cell, build = pair(name, {})
    check(linen.RNN(linen_cell, **fields), lambda r: nn.RNN(build(r), **fields), array(2, 5, 3))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kwargs",
    [
        {"return_carry": True},
        {"reverse": True},
        {"reverse": True, "keep_order": True, "return_carry": True},
        {"time_major": True, "return_carry": True},
        {"time_major": True, "reverse": True, "keep_order": True},
    ],
)
def test_rnn_call_arguments_with_padding(kwargs):
    linen_cell, build = pair("LSTMCell", {})
    shape = (5, 2, 3) if kwargs.get("time_major") else (2, 5, 3)
    kwargs = {**kwargs, "seq_lengths": jnp.array([2, 4])}
    check(linen.RNN(linen_cell), lambda r: nn.RNN(build(r)), array(*shape), kwargs=kwargs)


def test_rnn_takes_an_initial_carry_or_a_key_for_one():
    linen_cell, build = pair("GRUCell", {"carry_init": nnx.initializers.normal()})
    carry = array(2, 4, seed=8)
    for kwargs in ({"initial_carry": carry}, {"init_key": jax.random.key(5)}):
        check(linen.RNN(linen_cell), lambda r: nn.RNN(build(r)), array(2, 5, 3), kwargs=kwargs)


@pytest.mark.slow
def test_rnn_over_images():
    fields = {"kernel_size": (3, 3)}
    linen_cell, build = pair("ConvLSTMCell", fields)
    check(linen.RNN(linen_cell), lambda r: nn.RNN(build(r)), array(2, 4, 5, 5, 3))


@pytest.mark.slow
@pytest.mark.parametrize("kwargs", [{}, {"return_carry": True}, {"seq_lengths": [2, 4]}])
def test_bidirectional_has_linens_bits(kwargs):
    if "seq_lengths" in kwargs:
        kwargs = {"seq_lengths": jnp.array(kwargs["seq_lengths"])}
    forward, build_forward = pair("LSTMCell", {})
    backward, build_backward = pair("GRUCell", {})
    check(
        linen.Bidirectional(linen.RNN(forward), linen.RNN(backward)),
        lambda r: nn.Bidirectional(nn.RNN(build_forward(r)), nn.RNN(build_backward(r))),
        array(2, 5, 3),
        kwargs=kwargs,
    )


class LinenInline(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.RNN(linen.SimpleCell(4), reverse=True)(x)
        x = linen.Bidirectional(linen.RNN(linen.GRUCell(3)), linen.RNN(linen.GRUCell(3)))(x)
        return linen.Sequential([linen.Dense(5), linen.relu, linen.Dense(2)])(x)


class Inline(nnx.Module):
    def __init__(self, *, rngs):
        self.SimpleCell_0 = nn.SimpleCell(4, in_features=3, rngs=rngs)
        self.GRUCell_0 = nn.GRUCell(3, in_features=4, rngs=rngs)
        self.GRUCell_1 = nn.GRUCell(3, in_features=4, rngs=rngs)
        self.Dense_0 = nnx.Linear(6, 5, rngs=rngs)
        self.Dense_1 = nnx.Linear(5, 2, rngs=rngs)

    def __call__(self, x):
        x = nn.RNN(self.SimpleCell_0, reverse=True)(x)
        x = nn.Bidirectional(nn.RNN(self.GRUCell_0), nn.RNN(self.GRUCell_1))(x)
        return nn.Sequential([self.Dense_0, nnx.relu, self.Dense_1])(x)


def test_wrappers_built_inline_leave_variables_with_the_caller():
    check(LinenInline(), lambda r: Inline(rngs=r), array(2, 5, 3))


class LinenNoisyCell(linen.RNNCellBase):
    rate: float = 0.5

    @linen.compact
    def __call__(self, carry, x):
        count = self.variable("steps", "count", lambda: jnp.zeros((), jnp.float32))
        x = linen.Dropout(self.rate, deterministic=False)(x)
        carry = carry + linen.Dense(3)(x)
        count.value = count.value + 1
        return carry, carry * count.value

    @linen.nowrap
    def initialize_carry(self, rng, input_shape):
        return jnp.zeros((*input_shape[:-1], 3))

    @property
    def num_feature_axes(self):
        return 1


class NoisyCell(nn.RNNCellBase):
    def __init__(self, rate=0.5, *, in_features, rngs):
        self.count = nn.variable("steps", jnp.zeros((), jnp.float32))
        self.Dropout_0 = nnx.Dropout(rate, deterministic=False, rngs=rngs)
        self.Dense_0 = nnx.Linear(in_features, 3, rngs=rngs)

    def __call__(self, carry, x):
        carry = carry + self.Dense_0(self.Dropout_0(x))
        self.count.set_value(self.count[...] + 1)
        return carry, carry * self.count[...]

    def initialize_carry(self, rng, input_shape):
        return jnp.zeros((*input_shape[:-1], 3))

    @property
    def num_feature_axes(self):
        return 1


@pytest.mark.parametrize("split", [True, False])
def test_rnn_carries_collections_and_draws_keys_as_told(split):
    fields = {"variable_carry": "steps", "split_rngs": {"params": False, "dropout": split}}
    x = array(2, 4, 3)
    with constant_key():
        rnn = nn.RNN(NoisyCell(in_features=3, rngs=nnx.Rngs(0)), **fields)
        graphdef, state = nnx.split(rnn)
        variables = traverse_util.unflatten_dict(nnx_leaves(state))

        def linen_run():
            rngs = {"dropout": jax.random.key(0)}
            linen_rnn = linen.RNN(LinenNoisyCell(), **fields)
            y, changed = linen_rnn.apply(variables, x, mutable=["steps"], rngs=rngs)
            return y, changed["steps"]["cell"]["count"]

        def run():
            merged = nnx.merge(graphdef, state, copy=True)
            return merged(x), merged.cell.count[...]

        expected, found = jax.jit(linen_run)(), jax.jit(run)()
    assert_same_bits(expected, found)
    assert found[1] == 4


@pytest.mark.parametrize("split", [True, False])
def test_rnn_draws_new_keys_in_every_call(split):
    fields = {"variable_carry": "steps", "split_rngs": {"dropout": split}}
    rnn = nn.RNN(NoisyCell(in_features=3, rngs=nnx.Rngs(0)), **fields)
    x = jnp.ones((1, 3, 3))
    rnn.cell.Dense_0.kernel.set_value(jnp.eye(3))

    def increments():
        rnn.cell.count.set_value(jnp.zeros(()))
        y = rnn(x) / jnp.array([1.0, 2.0, 3.0])[None, :, None]
        return jnp.diff(y, axis=1, prepend=0.0)

    first, second = increments(), increments()
    assert not jnp.array_equal(first, second)
    same_in_every_step = bool((first == first[:, :1]).all())
    assert same_in_every_step is not split


def test_rnn_refuses_a_variable_that_the_loop_would_not_see():
    rnn = nn.RNN(NoisyCell(in_features=3, rngs=nnx.Rngs(0)))
    with pytest.raises(ValueError, match="'count' is of collection 'steps'"):
        rnn(array(2, 4, 3))


def test_rnn_refuses_one_default_stream_with_two_rules():
    fields = {"variable_carry": "steps", "split_rngs": {"dropout": True, "noise": False}}
    rnn = nn.RNN(NoisyCell(in_features=3, rngs=nnx.Rngs(0)), **fields)
    with pytest.raises(ValueError, match="'default' stream"):
        rnn(array(2, 4, 3))
    named = nn.RNN(NoisyCell(in_features=3, rngs=nnx.Rngs(params=0, dropout=1)), **fields)
    assert named(array(2, 4, 3)).shape == (2, 4, 3)


def test_rnn_refuses_scanned_variables():
    cell = nn.GRUCell(3, in_features=3, rngs=nnx.Rngs(0))
    with pytest.raises(NotImplementedError, match="variable_axes"):
        nn.RNN(cell, variable_axes={"params": 0})


def test_sequential_passes_tuples_and_dicts_on():
    pick = nn.Sequential([lambda x: (x, 2 * x), lambda a, b: {"p": a, "q": b}, lambda p, q: p - q])
    assert pick(3) == -3


def test_sequential_refuses_no_layers_and_no_sequence():
    with pytest.raises(ValueError, match="found none"):
        nn.Sequential([])(1)
    with pytest.raises(TypeError, match="expected layers to be a sequence"):
        nn.Sequential(iter([jnp.sin]))


def test_batch_apply_merges_leading_axes():
    x, small = array(2, 3, 4), array(4)
    double = lambda x, small: {"y": x @ small}
    expected = linen.BatchApply(lambda x, b: {"y": jnp.sum(x * b[None], axis=1)})(x, small)
    found = nn.BatchApply(lambda x, b: {"y": jnp.sum(x * b[None], axis=1)})(x, small)
    assert_same_bits(expected, found)
    with pytest.raises(ValueError, match="at least 3 axes"):
        nn.BatchApply(double, 3)(array(2, 3), small)
