"""Linear layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from tests.linen.layers.comparison import assert_same_error, evaluate, floats, pair

X = (2, 3, 4)
BOXED = """
BOXED = spmd.with_logical_partitioning(initializers.lecun_normal(), ("a", "b", "c"))
"""
CASES = {
    "dense": ("linear.Dense(5)", X),
    "dense no bias": ("linear.Dense(5, use_bias=False)", X),
    "dense bfloat16": ("linear.Dense(5, dtype=jnp.bfloat16)", X),
    "dense bfloat16 parameters": ("linear.Dense(5, param_dtype=jnp.bfloat16)", X),
    "dense precision": ("linear.Dense(5, precision='highest')", X),
    "dense dot_general": (
        "linear.Dense(5, dot_general=functools.partial(jax.lax.dot_general, preferred_element_type=jnp.float32))",
        X,
    ),
    "dense cls first": (
        "linear.Dense(5, dot_general=None, dot_general_cls=lambda: jax.lax.dot_general)",
        X,
    ),
    "dense promote": (
        "linear.Dense(5, promote_dtype=lambda *a, dtype=None, inexact=True: [x * 2 for x in a])",
        X,
    ),
    "general": ("linear.DenseGeneral((5, 6))", X),
    "general axes": ("linear.DenseGeneral((5, 6), axis=(1, -1))", X),
    "general order of axes": ("linear.DenseGeneral(5, axis=(-1, 1))", X),
    "general batch": ("linear.DenseGeneral(5, axis=-1, batch_dims=(0,))", X),
    "general batches": ("linear.DenseGeneral((5, 2), axis=-1, batch_dims=(0, 1))", X),
    "general no bias": ("linear.DenseGeneral(5, use_bias=False, dtype=jnp.bfloat16)", X),
    "general boxed": (
        "linear.DenseGeneral((5, 2), kernel_init=BOXED)",
        X,
    ),
    "einsum": ("linear.Einsum((4, 5, 6), 'abc,cde->abde')", X),
    "einsum ellipsis": ("linear.Einsum((4, 5), '...c, cd -> ...d')", X),
    "einsum order": ("linear.Einsum((5, 4, 6), 'abc,dce->aebd')", X),
    "einsum no bias": ("linear.Einsum((4, 5), 'abc,cd->abd', use_bias=False)", X),
    "einsum preferred": (
        "linear.Einsum((4, 5), 'abc,cd->abd', preferred_element_type=jnp.float32, dtype=jnp.bfloat16)",
        X,
    ),
    "conv": ("linear.Conv(5, 3)", (2, 6, 4)),
    "conv 2d": ("linear.Conv(5, (3, 2), strides=2)", (2, 6, 7, 4)),
    "conv int": ("linear.Conv(5, kernel_size=2, strides=None)", (2, 6, 4)),
    "conv without batch": ("linear.Conv(5, (3,))", (6, 4)),
    "conv two batch axes": ("linear.Conv(5, (3,), padding='VALID')", (2, 3, 6, 4)),
    "conv padding int": ("linear.Conv(5, (3, 3), padding=1)", (2, 6, 6, 4)),
    "conv padding mixed": ("linear.Conv(5, (3, 3), padding=(1, (0, 2)))", (2, 6, 6, 4)),
    "conv padding list": ("linear.Conv(5, (3,), padding=[[1, 1]])", (2, 6, 4)),
    "conv circular": ("linear.Conv(5, (3,), padding='CIRCULAR', kernel_dilation=2)", (2, 6, 4)),
    "conv reflect": ("linear.Conv(5, (4,), padding='REFLECT')", (2, 6, 4)),
    "conv causal": ("linear.Conv(5, (3,), padding='CAUSAL', kernel_dilation=2)", (2, 6, 4)),
    "conv dilation": ("linear.Conv(5, (3,), input_dilation=2, padding=1)", (2, 6, 4)),
    "conv groups": ("linear.Conv(6, (3,), feature_group_count=2, dtype=jnp.bfloat16)", (2, 6, 4)),
    "conv mask": ("linear.Conv(5, (3,), mask=jnp.tril(jnp.ones((3, 4, 5))))", (2, 6, 4)),
    "conv given": (
        "linear.Conv(5, (3,), conv_general_dilated=jax.lax.conv_general_dilated, use_bias=False)",
        (2, 6, 4),
    ),
    "local": ("linear.ConvLocal(5, (3,))", (2, 6, 4)),
    "local 2d": ("linear.ConvLocal(5, (3, 2), strides=2, padding='VALID')", (2, 6, 5, 4)),
    "local circular": ("linear.ConvLocal(5, (3,), padding='CIRCULAR', use_bias=False)", (2, 6, 4)),
    "local batches": ("linear.ConvLocal(5, (3,))", (2, 2, 6, 4)),
    "transpose": ("linear.ConvTranspose(5, (3,))", (2, 6, 4)),
    "transpose int": ("linear.ConvTranspose(5, 3, padding='VALID')", (2, 6, 4)),
    "transpose strides": ("linear.ConvTranspose(5, (3, 3), strides=(2, 2))", (2, 4, 4, 3)),
    "transpose circular": (
        "linear.ConvTranspose(5, (3, 4), strides=(2, 3), padding='CIRCULAR')",
        (2, 4, 4, 3),
    ),
    "transpose kernel": (
        "linear.ConvTranspose(5, (4,), strides=(2,), padding='CIRCULAR', transpose_kernel=True)",
        (2, 5, 3),
    ),
    "transpose mask": (
        "linear.ConvTranspose(5, (3,), mask=jnp.tril(jnp.ones((3, 4, 5))), use_bias=False)",
        (6, 4),
    ),
    "transpose dilation": (
        "linear.ConvTranspose(5, (3,), kernel_dilation=(2,), padding=1)",
        (2, 2, 6, 4),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_layer_is_the_same_program(case):
    expression, shape = CASES[case]
    pair(expression, floats(*shape), source=BOXED).check_programs()


@pytest.mark.parametrize(
    "case", ["dense", "general batch", "einsum", "conv circular", "local", "transpose kernel"]
)
def test_a_layer_gives_the_same_bits(case):
    expression, shape = CASES[case]
    pair(expression, floats(*shape)).check_numbers()


@pytest.mark.parametrize("fields", ["", ", dtype=jnp.bfloat16", ", param_dtype=jnp.float16"])
def test_embed_looks_up_and_attends(fields):
    found = pair(f"linear.Embed(5, 3{fields})", jnp.array([[0, 1], [4, 9]]))
    found.check_programs()
    found.check_numbers()
    attend = pair(f"linear.Embed(5, 3{fields})", floats(2, 3), method="attend")
    attend.check_programs()


def test_embed_of_one_row_broadcasts():
    pair("linear.Embed(1, 3)", jnp.array([[0, 7]])).check_programs()


def test_the_equation_may_come_with_the_call():
    pair("linear.Einsum((4, 5))", floats(*X), einsum_str="abc,cd->abd").check_programs()


@pytest.mark.parametrize(
    "expression",
    [
        "linear.DenseGeneral(5, batch_dims=(1,)).init(jax.random.key(0), jnp.ones((2, 3)))",
        "linear.Einsum((4, 5), 'abc,cd').init(jax.random.key(0), jnp.ones((2, 3, 4)))",
        "linear.Einsum((4, 5), 'abc->abc').init(jax.random.key(0), jnp.ones((2, 3, 4)))",
        "linear.Einsum((4, 5)).init(jax.random.key(0), jnp.ones((2, 3, 4)))",
        "linear.Einsum((4, 5), 'ab,bc->ac').init(jax.random.key(0), jnp.ones((2, 4)), 'ab,bc->ac')",
        "linear.Einsum((4, 5), 'ab,b->a').init(jax.random.key(0), jnp.ones((2, 4)))",
        "linear.Conv(5, (3, 3), padding='CAUSAL').init(jax.random.key(0), jnp.ones((2, 6, 6, 4)))",
        "linear.Conv(5, (3,), padding=(1, 2, 3)).init(jax.random.key(0), jnp.ones((2, 6, 4)))",
        "linear.Conv(5, (3,), mask=jnp.ones((3,))).init(jax.random.key(0), jnp.ones((2, 6, 4)))",
        "linear.Conv(5, (3,), feature_group_count=3).init(jax.random.key(0), jnp.ones((2, 6, 4)))",
        "linear.ConvLocal(5, (3,), feature_group_count=2).init(jax.random.key(0), jnp.ones((2, 6, 4)))",
        "linear.ConvTranspose(5, (3,), mask=jnp.ones((3,))).init(jax.random.key(0), jnp.ones((6, 4)))",
        "linear.Embed(5, 3).init(jax.random.key(0), jnp.ones((2,)))",
        "linear.Dense().init(jax.random.key(0), jnp.ones((2,)))",
        "linear.Dense(3).apply({'params': {'kernel': jnp.ones((3, 3))}}, jnp.ones((2, 4)))",
        "linear.Dense(3).apply({'params': {'kernel': jnp.ones((4, 3))}}, jnp.ones((2, 4)))",
        "linear.Dense(3, dtype=jnp.int32).init(jax.random.key(0), jnp.ones((2, 4)))",
    ],
)
def test_what_linen_refuses_is_refused(expression):
    assert_same_error(expression)


@pytest.mark.parametrize("padding", ["'SAME'", "2", "(1, 2)", "((1, 2), 3)", "[0, (1, 1)]"])
def test_padding_is_read_alike(padding):
    linen, lazy = evaluate(f"linear.canonicalize_padding({padding}, 2)")
    assert linen == lazy


def test_helpers_that_flax_keeps_private_are_there():
    for expression in (
        "linear._conv_dimension_numbers((2, 3, 4, 5))",
        "linear._normalize_axes((-1, 0), 3)",
        "linear._canonicalize_tuple(3)",
        "linear._canonicalize_tuple([3, 4])",
        "issubclass(linear.Conv, linear._Conv)",
    ):
        linen, lazy = evaluate(expression)
        assert linen == lazy


def test_a_complex_input_gives_a_complex_output():
    pair("linear.Dense(3)", jnp.ones((2, 4), jnp.complex64)).check_programs(gradients=False)


def test_layers_of_a_compact_method_are_named_as_in_linen():
    source = """
class Two(Module):
    @compact
    def __call__(self, x):
        x = linear.Dense(3)(x)
        x = linear.Dense(4, name="named")(x)
        return linear.Conv(2, (3,))(x)
"""
    found = pair("Two()", floats(2, 6, 4), source=source)
    variables = found.check_programs()
    assert sorted(variables["params"]) == ["Conv_0", "Dense_0", "named"]
    found.check_numbers()


def test_a_layer_maps_over_a_batch():
    linen, lazy = evaluate("linear.Dense(3)")
    x = floats(5, 2, 4)
    variables = jax.jit(linen.init)(jax.random.key(0), x[0])
    texts = [
        jax.jit(jax.vmap(model.apply, (None, 0))).lower(variables, x).as_text()
        for model in (linen, lazy)
    ]
    assert texts[0] == texts[1]
