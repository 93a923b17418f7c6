"""Attention layers and functions against Linen's."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn
from tests.nn.oracle import array, assert_same_bits, check, constant_key

DTYPES = [(None, jnp.float32), (jnp.bfloat16, jnp.float32)]


def pair(name, fields, **sizes):
    fields = {"num_heads": 2, **fields}
    build = getattr(nn, name)
    sizes = {"in_features": 6, **sizes}
    return getattr(linen, name)(**fields), lambda r: build(**fields, **sizes, rngs=r)


@pytest.mark.parametrize(("dtype", "param_dtype"), DTYPES)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"normalize_qk": True, "use_bias": False},
        {"qkv_features": 8, "out_features": 5, "force_fp32_for_softmax": True},
        {"dropout_rate": 0.4, "deterministic": False},
        {"dropout_rate": 0.4, "deterministic": False, "broadcast_dropout": False},
    ],
)
def test_attention_is_linens_program(fields, dtype, param_dtype):
    fields = {**fields, "dtype": dtype, "param_dtype": param_dtype}
    mask = array(2, 1, 4, 4, seed=9) > -1.0
    linen_module, build = pair("MultiHeadDotProductAttention", fields)
    check(linen_module, build, array(2, 4, 6), kwargs={"mask": mask})


def test_cross_attention_with_initialisers_precision_and_extra_batch_axes():
    fields = {"precision": jax.lax.Precision.HIGHEST, "kernel_init": nnx.initializers.normal(0.2)}
    fields |= {
        "out_kernel_init": nnx.initializers.uniform(),
        "bias_init": nnx.initializers.normal(),
    }
    fields |= {"out_bias_init": nnx.initializers.ones}
    linen_module, build = pair("MultiHeadAttention", fields, in_kv_features=5, in_v_features=3)
    check(linen_module, build, array(2, 3, 4, 6), array(2, 3, 7, 5), array(2, 3, 7, 3))


def test_self_attention_takes_a_positional_mask():
    mask = array(2, 1, 4, 4, seed=9) > -1.0
    linen_module, build = pair("SelfAttention", {})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SelfAttention will be deprecated", DeprecationWarning)
        check(linen_module, build, array(2, 4, 6), mask)


def test_attention_calls_a_users_function_with_what_it_knows():
    def values_only(query, key, value, mask=None, precision=None):
        return value * 2 if mask is None else jnp.where(mask[0, 0, 0, 0], value, 0)

    linen_module, build = pair("MultiHeadAttention", {"attention_fn": values_only})
    check(linen_module, build, array(2, 4, 6), differentiate=False)


def test_attention_adapts_dot_general():
    def negated(lhs, rhs, dimension_numbers, precision=None):
        return -jax.lax.dot_general(lhs, rhs, dimension_numbers, precision=precision)

    linen_module, build = pair("MultiHeadAttention", {"qkv_dot_general": negated})
    check(linen_module, build, array(2, 4, 6))


@pytest.mark.parametrize(
    ("dtype", "input_dtype"), [(None, jnp.float32), (jnp.bfloat16, jnp.float32)]
)
def test_decoding_fills_linens_cache(dtype, input_dtype):
    fields = {"decode": True, "dtype": dtype, "num_heads": 2}
    sequence = array(2, 4, 6, dtype=input_dtype)
    linen_module = linen.MultiHeadAttention(**fields)
    with constant_key():
        variables = linen_module.init(jax.random.key(0), sequence)
        module = nn.MultiHeadAttention(
            **fields, in_features=6, cache_shape=sequence.shape, rngs=nnx.Rngs(0)
        )
    for name, projection in variables["params"].items():
        for leaf, value in projection.items():
            getattr(getattr(module, name), leaf).set_value(value)
    for step in range(3):
        x = sequence[:, step : step + 1]
        expected, changed = linen_module.apply(variables, x, mutable=["cache"])
        variables = {**variables, **changed}
        assert_same_bits(expected, module(x))
        for name, value in variables["cache"].items():
            assert_same_bits(value, getattr(module, name)[...], name)
            assert isinstance(getattr(module, name), nnx.Cache)


def test_decoding_refuses_a_missing_cache_and_long_inputs():
    module = nn.MultiHeadAttention(2, decode=True, in_features=6, rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match="init_cache"):
        module(array(2, 1, 6))
    module.init_cache((2, 4, 6))
    with pytest.raises(ValueError, match=r"expected a query of shape \(2, 1, 2, 3\)"):
        module(array(2, 2, 6))


def test_attention_sows_its_weights():
    linen_module, build = pair("MultiHeadAttention", {})
    x = array(2, 4, 6)
    with constant_key():
        variables = linen_module.init(jax.random.key(0), x)
        module = build(nnx.Rngs(0))
    for name, projection in variables["params"].items():
        getattr(module, name).kernel.set_value(projection["kernel"])
    _, sown = linen_module.apply(variables, x, sow_weights=True, mutable=["intermediates"])
    captured = nnx.capture(module, nnx.Intermediate)(x, sow_weights=True)[1]
    weights = jax.tree.leaves(captured)
    assert_same_bits(sown["intermediates"]["attention_weights"][0], weights[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"inputs_kv": 1, "inputs_k": 1}, "found both"),
        ({"inputs_v": 1}, "inputs_v only"),
        ({}, "found neither"),
        ({"deterministic": True}, "found both"),
    ],
)
def test_attention_refuses_contradicting_inputs(call, message):
    deterministic = True if "deterministic" in call else None
    module = nn.MultiHeadAttention(
        2, dropout_rate=0.5, deterministic=deterministic, in_features=6, rngs=nnx.Rngs(0)
    )
    call = {name: array(2, 4, 6) if name != "deterministic" else v for name, v in call.items()}
    with pytest.raises(ValueError, match=message):
        module(array(2, 4, 6), **call)


@pytest.mark.parametrize(
    "field",
    [
        "qkv_dot_general_cls",
        "out_dot_general_cls",
        "qk_attn_weights_einsum_cls",
        "attn_weights_value_einsum_cls",
    ],
)
def test_attention_refuses_quantisation_hooks(field):
    with pytest.raises(TypeError, match=field):
        nn.MultiHeadAttention(2, **{field: object}, in_features=6, rngs=nnx.Rngs(0))


def test_attention_refuses_heads_that_do_not_divide():
    with pytest.raises(ValueError, match="num_heads=4"):
        nn.MultiHeadAttention(4, in_features=6, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("dtype", [None, jnp.bfloat16])
@pytest.mark.parametrize("name", ["dot_product_attention", "dot_product_attention_weights"])
def test_attention_functions_are_linens(name, dtype):
    query, key, value = (array(2, n, 3, 4, seed=n) for n in (4, 5, 5))
    operands = (query, key, value) if name == "dot_product_attention" else (query, key)
    options = {"bias": array(2, 3, 4, 5), "dropout_rng": jax.random.key(1), "dropout_rate": 0.3}
    options |= {"dtype": dtype, "force_fp32_for_softmax": True}
    expected, found = (
        jax.jit(lambda *a, f=f: f(*a, **options))(*operands)
        for f in (getattr(linen, name), getattr(nn, name))
    )
    assert_same_bits(expected, found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"qk_attn_weights_einsum": jnp.einsum}, "found one"),
        (
            {
                "qk_attn_weights_einsum": jnp.einsum,
                "attn_weights_value_einsum": jnp.einsum,
                "precision": "highest",
            },
            "found both",
        ),
    ],
)
def test_attention_function_refuses_half_of_a_pair(options, message):
    x = array(2, 4, 3, 4)
    with pytest.raises(ValueError, match=message):
        nn.dot_product_attention(x, x, x, **options)


def test_attention_functions_refuse_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="batch, heads and depth"):
        nn.dot_product_attention_weights(array(2, 4, 3, 4), array(2, 4, 3, 5))
    with pytest.raises(ValueError, match="key and value in length"):
        nn.dot_product_attention(array(2, 4, 3, 4), array(2, 4, 3, 4), array(2, 5, 3, 4))
    with pytest.raises(ValueError, match="either einsum"):
        nn.dot_product_attention_weights(
            array(2, 4, 3, 4), array(2, 4, 3, 4), einsum=jnp.einsum, precision="highest"
        )


def test_masks_are_linens():
    tokens = jnp.array([[1, 2, 0], [3, 0, 0]])
    valid = tokens > 0
    for names, arguments in (
        ("make_attention_mask", (valid, valid)),
        ("make_causal_mask", (tokens,)),
    ):
        expected, found = (getattr(lib, names)(*arguments) for lib in (linen, nn))
        assert_same_bits(expected, found)
    causal, padding = nn.make_causal_mask(tokens), nn.make_attention_mask(valid, valid)
    assert_same_bits(
        linen.combine_masks(causal, None, padding), nn.combine_masks(causal, None, padding)
    )
    assert nn.combine_masks(None) is None


def test_the_call_goes_before_what_eval_sets():
    layer = nn.SelfAttention(2, dropout_rate=0.5, in_features=6, rngs=nnx.Rngs(0))
    x = array(2, 4, 6)
    layer.eval()
    kept = layer(x)
    assert_same_bits(kept, layer(x, deterministic=True))
    assert (kept != layer(x, deterministic=False)).any()
