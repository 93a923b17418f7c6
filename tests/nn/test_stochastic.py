"""Dropout against Linen's, and which streams keys come from."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn
from tests.nn.oracle import array, assert_same_bits, check, constant_key


class LinenTwice(linen.Module):
    fields: dict

    @linen.compact
    def __call__(self, x):
        dropout = linen.Dropout(0.4, **self.fields)
        return dropout(linen.Dense(6)(x), deterministic=False) + dropout(x, False)


class Twice(nnx.Module):
    def __init__(self, dropout, *, rngs):
        self.Dropout_0 = dropout
        self.Dense_0 = nnx.Linear(6, 6, rngs=rngs)

    def __call__(self, x):
        y = self.Dropout_0(self.Dense_0(x), deterministic=False)
        return y + self.Dropout_0(x, deterministic=False)


@pytest.mark.parametrize("input_dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("fields", [{}, {"broadcast_dims": (1, -1)}])
@pytest.mark.parametrize("layer", [nn.Dropout, nnx.Dropout])
def test_dropout_is_linens_program(layer, fields, input_dtype):
    def build(rngs):
        call_time = {"deterministic": None} if layer is nnx.Dropout else {}
        return Twice(layer(0.4, **fields, **call_time, rngs=rngs), rngs=rngs)

    check(LinenTwice(fields), build, array(4, 5, 6, dtype=input_dtype))


@pytest.mark.parametrize(
    "fields", [{"rate": 0.0}, {"rate": 1.0}, {"rate": 0.5, "deterministic": True}]
)
def test_dropout_needs_no_key_when_nothing_is_drawn(fields):
    x = array(3, 4)
    deterministic = None if "deterministic" in fields else False
    expected = linen.Dropout(**fields).apply({}, x, deterministic=deterministic)
    assert_same_bits(expected, nn.Dropout(**fields)(x, deterministic))


def test_dropout_takes_a_key():
    x, key = array(3, 4), jax.random.key(4)
    expected = linen.Dropout(0.5).apply({}, x, False, rng=key)
    assert_same_bits(expected, nn.Dropout(0.5)(x, False, rng=key))
    assert_same_bits(expected, nn.Dropout(0.5)(x, False, key))


def test_dropout_draws_another_mask_in_every_call_and_module():
    rngs = nnx.Rngs(0)
    first, second = (nn.Dropout(0.5, deterministic=False, rngs=rngs) for _ in range(2))
    x = jnp.ones(64)
    masks = [first(x), first(x), second(x)]
    assert not any(jnp.array_equal(masks[i], masks[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.parametrize(
    ("fields", "call", "message"),
    [
        ({}, {}, "found neither"),
        ({"deterministic": True}, {"deterministic": True}, "found both"),
        ({}, {"deterministic": False}, r"nnx.Rngs\(dropout=...\)"),
    ],
)
def test_dropout_refuses(fields, call, message):
    with pytest.raises(ValueError, match=message):
        nn.Dropout(0.5, **fields)(array(2, 3), **call)


def test_dropout_follows_eval_and_train():
    layer = nn.Dropout(0.5, deterministic=False, rngs=nnx.Rngs(0))
    x = jnp.ones(64)
    layer.eval()
    assert_same_bits(x, layer(x))
    layer.train()
    assert not layer(x).all()


@pytest.mark.parametrize(
    ("streams", "used"),
    [
        ({"noise": 1, "params": 2, "default": 3}, "noise"),
        ({"params": 2, "default": 3}, "params"),
        ({"default": 3}, "default"),
    ],
)
def test_make_rng_falls_back_to_params_then_default(streams, used):
    rngs = nnx.Rngs(**streams)
    key = nn.make_rng(rngs, "noise")
    assert jax.random.key_data(key).tolist() == (
        jax.random.key_data(nnx.Rngs(**streams)[used]()).tolist()
    )
    assert rngs[used].count[...] == 1


def test_make_rng_refuses_what_holds_no_stream():
    with pytest.raises(KeyError, match=r"nnx\.Rngs\(noise=\.\.\.\)"):
        nn.make_rng(nnx.Rngs(other=0), "noise")
    with pytest.raises(TypeError, match="expected rngs"):
        nn.make_rng(jax.random.key(0), "noise")


def test_owned_streams_have_their_own_keys():
    rngs = nnx.Rngs(params=0, noise=1)
    first, second = nn.stream(rngs, "noise"), nn.stream(rngs, "noise")
    data = [jax.random.key_data(key).tolist() for key in (first(), first(), second())]
    assert len({tuple(key) for key in data}) == 3
    assert first.tag == "noise"


def test_param_has_linens_value_for_the_same_key():
    class Linen(linen.Module):
        @linen.compact
        def __call__(self):
            scale = self.param("scale", linen.initializers.normal(), (3, 4), jnp.bfloat16)
            return scale, self.param("fixed", lambda key: jnp.arange(3.0))

    def construct():
        rngs = nnx.Rngs(0)
        scale = nn.param(rngs, nnx.initializers.normal(), (3, 4), jnp.bfloat16)
        direct = nnx.Param(nnx.initializers.normal()(rngs.params(), (3, 4), jnp.bfloat16))
        return scale[...], direct[...], nn.param(rngs, lambda key: jnp.arange(3.0))[...]

    with constant_key():
        expected = jax.jit(lambda: Linen().init(jax.random.key(0))["params"])()
        scale, direct, fixed = jax.jit(construct)()
    assert_same_bits(expected["scale"], scale)
    assert_same_bits(expected["scale"], direct)
    assert_same_bits(expected["fixed"], fixed)


@pytest.mark.parametrize(
    ("collection", "kind"),
    [
        ("params", nnx.Param),
        ("batch_stats", nnx.BatchStat),
        ("cache", nnx.Cache),
        ("intermediates", nnx.Intermediate),
    ],
)
def test_collections_have_nnx_types(collection, kind):
    assert nn.variable_type(collection) is kind
    assert isinstance(nn.variable(collection, jnp.ones(2)), kind)


def test_other_collections_get_one_type_each():
    assert nn.variable_type("running") is nn.variable_type("running")
    assert nn.variable_type("running") is not nn.variable_type("walking")
    assert nnx.variable_name_from_type(nn.variable_type("running")) == "running"


@pytest.mark.parametrize(
    ("a", "b", "expected"), [(True, None, True), (None, False, False), (0, None, 0)]
)
def test_merge_param_takes_the_one_given(a, b, expected):
    assert nn.merge_param("flag", a, b) == expected == linen.merge_param("flag", a, b)


@pytest.mark.parametrize(("a", "b", "message"), [(None, None, "neither"), (True, False, "both")])
def test_merge_param_refuses_none_and_two(a, b, message):
    with pytest.raises(ValueError, match=f"'flag'.*{message}"):
        nn.merge_param("flag", a, b)


def test_promote_dtype_is_linens():
    arguments = (jnp.ones(2, jnp.bfloat16), None, jnp.arange(3))
    for options in ({}, {"dtype": jnp.float32}, {"dtype": jnp.int32, "inexact": False}):
        expected = linen.dtypes.promote_dtype(*arguments, **options)
        assert_same_bits(expected, nn.promote_dtype(*arguments, **options))
    with pytest.raises(ValueError, match="floating or complex"):
        nn.canonicalize_dtype(jnp.ones(2), dtype=jnp.int32)


def test_the_switch_of_nnx_counts_where_the_call_says_nothing():
    x = jnp.ones((9, 9))
    dropout = nn.Dropout(0.5, rngs=nnx.Rngs(0))
    dropout.eval()
    assert_same_bits(x, dropout(x))
    assert (dropout(x, False) == 0).any()
    dropout.train()
    assert (dropout(x) == 0).any()
    assert_same_bits(x, dropout(x, True))


def test_a_mode_of_the_constructor_and_one_of_the_call_are_an_error():
    dropout = nn.Dropout(0.5, deterministic=True)
    with pytest.raises(ValueError, match="found both"):
        dropout(jnp.ones(3), False)
