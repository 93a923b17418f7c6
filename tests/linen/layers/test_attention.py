"""Attention."""

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
    namespaces,
    pair,
)

HEADS = "attention.MultiHeadDotProductAttention(2, {})"
FIELDS = {
    "plain": "",
    "sizes": "qkv_features=8, out_features=3",
    "bfloat16": "dtype=jnp.bfloat16, force_fp32_for_softmax=True",
    "no bias": "use_bias=False, param_dtype=jnp.bfloat16",
    "normalized": "normalize_qk=True",
    "initialisers": (
        "kernel_init=initializers.normal(), out_kernel_init=initializers.ones, "
        "out_bias_init=initializers.ones"
    ),
    "dropout": "dropout_rate=0.5, deterministic=False",
    "dropout per weight": "dropout_rate=0.5, deterministic=False, broadcast_dropout=False",
    "no dropout": "dropout_rate=0.5, deterministic=True",
    "dot_general": "qkv_dot_general=jax.lax.dot_general, out_dot_general=jax.lax.dot_general",
    "classes": (
        "qkv_dot_general_cls=lambda: jax.lax.dot_general, out_dot_general_cls=lambda: jax.lax.dot_general"
    ),
    "einsums": (
        "qk_attn_weights_einsum_cls=lambda: jnp.einsum, attn_weights_value_einsum_cls=lambda: jnp.einsum"
    ),
    "own function": "attention_fn=lambda q, k, v, mask=None: v",
}
Q, K = (2, 3, 4), (2, 5, 4)


@pytest.mark.parametrize("case", FIELDS)
def test_a_layer_is_the_same_program(case):
    found = pair(HEADS.format(FIELDS[case]), floats(*Q), floats(*K))
    if case == "own function":
        found.inputs = (floats(*Q),)
    found.check_programs()


@pytest.mark.parametrize("case", ["plain", "dropout", "normalized"])
def test_a_layer_gives_the_same_bits(case):
    pair(HEADS.format(FIELDS[case]), floats(*Q), floats(*K)).check_numbers()


def test_weights_are_sown_as_in_linen():
    found = pair(HEADS.format(""), floats(*Q), mutable=["intermediates"], sow_weights=True)
    found.check_programs()
    _, (_, changed) = found.check_numbers()
    (weights,) = changed["intermediates"]["attention_weights"]
    assert weights.shape == (2, 2, 3, 3)


def test_capturing_intermediates_shows_linens_methods_only():
    linen, lazy = evaluate(HEADS.format("normalize_qk=True"))
    x = floats(*Q)
    variables = jax.jit(linen.init)(jax.random.key(0), x)
    captured = [
        jax.jit(lambda v, model=model: model.apply(v, x, capture_intermediates=True, mutable=True))(
            variables
        )
        for model in (linen, lazy)
    ]
    assert_same_bits(*captured)


def test_masks_and_a_key_come_with_the_call():
    mask = jnp.arange(9).reshape(1, 1, 3, 3) % 2 == 0
    options = {"mask": mask, "dropout_rng": jax.random.key(3), "deterministic": False}
    pair(HEADS.format("dropout_rate=0.5"), floats(*Q), **options).check_programs()


def test_decoding_fills_the_same_cache():
    linen, lazy = evaluate(HEADS.format("decode=True, qkv_features=8"))
    keys, x = {"params": jax.random.key(0)}, floats(2, 4, 4)
    first = [jax.jit(model.init)(keys, x) for model in (linen, lazy)]
    assert_same_bits(*first)
    variables = first[0]
    for at in range(2):
        step = x[:, at : at + 1]
        apply = lambda model: lambda v, x: model.apply(v, x, mutable=["cache"])
        assert_same_text(apply(linen), apply(lazy), variables, step)
        results = [jax.jit(apply(model))(variables, step) for model in (linen, lazy)]
        assert_same_bits(*results)
        variables = {**variables, **results[0][1]}


def test_other_names_of_the_layer_name_it_otherwise():
    source = """
class Model(Module):
    @compact
    def __call__(self, x):
        x = attention.MultiHeadAttention(2)(x)
        x = attention.MultiHeadDotProductAttention(2)(x)
        return attention.SelfAttention(2)(x)
"""
    with pytest.warns(DeprecationWarning, match="SelfAttention will be deprecated soon"):
        variables = pair("Model()", floats(*Q), source=source).check_programs()
    names = ["MultiHeadAttention_0", "MultiHeadDotProductAttention_0", "SelfAttention_0"]
    assert sorted(variables["params"]) == sorted(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("x, inputs_kv=x", "The inputs_kv arg will be deprecated soon."),
        ("x, x, jnp.ones((2, 3, 3))", "the function signature of MultiHeadDotProductAttention's"),
    ],
)
def test_what_flax_gives_up_warns(arguments, message):
    linen, lazy = namespaces(
        "x = jnp.ones((2, 3, 4))\nlayer = attention.MultiHeadDotProductAttention(1)"
    )
    for side in (linen, lazy):
        with pytest.warns(DeprecationWarning, match=message):
            eval(f"jax.eval_shape(lambda: layer.init(jax.random.key(0), {arguments}))", side)


INIT = "attention.MultiHeadDotProductAttention({}).init(jax.random.key(0), {})"
ONES = "jnp.ones((2, 3, 4))"


@pytest.mark.parametrize(
    "expression",
    [
        INIT.format("3", ONES),
        INIT.format("2", f"{ONES}, inputs_v={ONES}"),
        INIT.format("2", f"{ONES}, {ONES}, inputs_kv={ONES}"),
        INIT.format("2, dropout_rate=0.1", ONES),
        INIT.format("2, dropout_rate=0.1, deterministic=True", f"{ONES}, deterministic=True"),
        INIT.format("2", f"{ONES}, jnp.ones((3, 3, 4))"),
        INIT.format("2, precision='highest', qk_attn_weights_einsum_cls=lambda: jnp.einsum", ONES),
        "DECODING.apply(DECODING.init(jax.random.key(0), X), X[:, :2], mutable=['cache'])",
        "attention.combine_masks(jnp.ones((2,)), jnp.ones((2, 2)))",
        f"attention.dot_product_attention({ONES}, {ONES}, jnp.ones((2, 2, 4)))",
        f"attention.dot_product_attention({ONES}, {ONES}, {ONES}, qk_attn_weights_einsum=jnp.einsum)",
        f"attention.dot_product_attention_weights({ONES}, jnp.ones((2, 3, 5)))",
        f"attention.dot_product_attention_weights({ONES}, {ONES}, precision='highest', einsum=jnp.einsum)",
    ],
)
def test_what_linen_refuses_is_refused(expression):
    decoding = "DECODING = attention.MultiHeadDotProductAttention(2, decode=True)"
    assert_same_error(expression, f"X = {ONES}\n{decoding}")


@pytest.mark.parametrize(
    "options",
    [
        "",
        "bias=jnp.ones((1, 1, 3, 3)), mask=jnp.ones((1, 1, 3, 3), bool)",
        "dropout_rate=0.5, dropout_rng=jax.random.key(0)",
        "dropout_rate=0.5, dropout_rng=jax.random.key(0), broadcast_dropout=False, dtype=jnp.bfloat16",
        "dtype=jnp.bfloat16, force_fp32_for_softmax=True",
        "precision='highest'",
        "einsum_dot_general=jax.lax.dot_general",
    ],
)
@pytest.mark.parametrize("name", ["dot_product_attention", "dot_product_attention_weights"])
def test_the_function_is_the_same_program(name, options):
    arguments = "x, x, x" if name == "dot_product_attention" else "x, x"
    linen, lazy = evaluate(f"lambda x: attention.{name}({arguments}, {options})")
    assert_same_text(linen, lazy, floats(2, 3, 2, 4))


@pytest.mark.parametrize(
    "expression",
    [
        "lambda x: attention.make_attention_mask(x, x)",
        "lambda x: attention.make_attention_mask(x, x, jnp.greater, 1, jnp.bool_)",
        "lambda x: attention.make_causal_mask(x, extra_batch_dims=2)",
        "lambda x: attention.combine_masks(x > 0, None, x > 1)",
    ],
)
def test_masks_are_the_same_program(expression):
    assert_same_text(*evaluate(expression), floats(2, 3))


def test_no_masks_combine_to_none():
    assert evaluate("attention.combine_masks(None, None)") == (None, None)
