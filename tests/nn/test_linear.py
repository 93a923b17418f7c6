"""Linear layers: factories for the native ones, and the own ones, against Linen's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn
from nnx_migrate.nn import factory
from tests.nn.oracle import array, assert_same_bits, check, constant_key

DTYPES = [(None, jnp.float32), (jnp.bfloat16, jnp.float32)]

LAYERS = [
    ("Dense", (4,), {}, {"in_features": 6}, (2, 5, 6)),
    ("Dense", (4, False), {}, {"in_features": 6}, (6,)),
    ("DenseGeneral", ((4, 3),), {"axis": (-1, 1)}, {"in_features": (5, 6)}, (2, 5, 6)),
    ("DenseGeneral", (4,), {"use_bias": False}, {"in_features": 6}, (2, 5, 6)),
    (
        "DenseGeneral",
        (4, -1, (0,)),
        {},
        {"in_features": 6, "batch_sizes": (2,)},
        (2, 5, 6),
    ),
    ("Einsum", ((6, 3, 2), "...a,abc->...cb"), {}, {}, (2, 5, 6)),
    ("Einsum", ((5, 6, 7), "abc,cde->abde"), {}, {}, (3, 4, 5)),
    ("Einsum", ((6, 3), "ab,bc->ac", False), {}, {}, (5, 6)),
    ("Conv", (4, (3,)), {"padding": "CAUSAL"}, {"in_features": 6}, (2, 5, 6)),
    ("Conv", (4, (3, 3), 2, "CIRCULAR"), {}, {"in_features": 6}, (2, 2, 5, 5, 6)),
    ("Conv", (6, (2, 2)), {"feature_group_count": 3}, {"in_features": 6}, (5, 5, 6)),
    ("ConvTranspose", (4, (3, 3), (2, 2)), {}, {"in_features": 6}, (2, 4, 5, 6)),
    (
        "ConvTranspose",
        (4, (3,), (2,), "CIRCULAR"),
        {"transpose_kernel": True},
        {"in_features": 6},
        (2, 5, 6),
    ),
    ("ConvLocal", (4, (3,)), {}, {"input_shape": (2, 5, 6)}, (2, 5, 6)),
    ("ConvLocal", (4, 3, 1, "CAUSAL"), {}, {"input_shape": (2, 5, 6)}, (5, 6)),
    ("ConvLocal", (3, (3, 2), 2, "CIRCULAR"), {}, {"input_shape": (2, 5, 5, 6)}, (2, 5, 5, 6)),
    ("ConvLocal", (3, (3, 3)), {"padding": "REFLECT"}, {"input_shape": (5, 5, 6)}, (2, 2, 5, 5, 6)),
    ("ConvLocal", (3, (3,), 1, 1), {"use_bias": False}, {"input_shape": (1, 5, 6)}, (2, 5, 6)),
    ("ConvLocal", (3, (3,), 1, ((2, 0),)), {"kernel_dilation": 2}, {"input_shape": (5, 6)}, (5, 6)),
]


@pytest.mark.parametrize(("dtype", "param_dtype"), DTYPES)
@pytest.mark.parametrize(("name", "args", "fields", "sizes", "shape"), LAYERS)
def test_factory_gives_linens_program(name, args, fields, sizes, shape, dtype, param_dtype):
    fields = {**fields, "dtype": dtype, "param_dtype": param_dtype}
    build = getattr(factory, name)
    check(
        getattr(linen, name)(*args, **fields),
        lambda r: build(*args, **fields, **sizes, rngs=r),
        array(*shape),
    )


@pytest.mark.parametrize("name", ["Conv", "ConvTranspose", "ConvLocal"])
def test_convolutions_take_a_kernel_mask(name):
    shape = (5, 3 * 6, 4) if name == "ConvLocal" else (3, 6, 4)
    fields = {"mask": array(*shape, seed=9) > 0}
    sizes = {"input_shape": (2, 5, 6)} if name == "ConvLocal" else {"in_features": 6}
    build = getattr(factory, name)
    check(
        getattr(linen, name)(4, (3,), **fields),
        lambda r: build(4, (3,), **fields, **sizes, rngs=r),
        array(2, 5, 6),
        # Linen embeds the mask as a constant; here it is data of the module.
        same_program=False,
    )


def test_factories_adapt_functions_written_for_linen():
    def dot_general(lhs, rhs, dimension_numbers, precision=None):
        return -jax.lax.dot_general(lhs, rhs, dimension_numbers, precision=precision)

    def conv(*args, **options):
        assert "out_sharding" not in options
        return -jax.lax.conv_general_dilated(*args, **options)

    def promote(*arrays, dtype=None, inexact=True):
        return [None if x is None else x.astype(jnp.float16) for x in arrays]

    fields = {"dot_general": dot_general, "promote_dtype": promote}
    x = array(2, 6)
    check(linen.Dense(4, **fields), lambda r: factory.Dense(4, **fields, in_features=6, rngs=r), x)
    check(
        linen.DenseGeneral(4, **fields),
        lambda r: factory.DenseGeneral(4, **fields, in_features=6, rngs=r),
        x,
    )
    fields = {"conv_general_dilated": conv}
    check(
        linen.Conv(4, (3,), **fields),
        lambda r: factory.Conv(4, (3,), **fields, in_features=6, rngs=r),
        array(2, 5, 6),
    )


def test_dot_general_adapter_refuses_an_out_sharding():
    adapted = nn.linen_dot_general(jax.lax.dot_general)
    with pytest.raises(TypeError, match="takes no out_sharding"):
        adapted(array(2, 3), array(3, 2), (((1,), (0,)), ((), ())), out_sharding="x")


@pytest.mark.parametrize(("dtype", "param_dtype"), [*DTYPES, (None, jnp.bfloat16)])
@pytest.mark.parametrize("rows", [5, 1])
def test_embed_looks_up_and_attends_as_linens(rows, dtype, param_dtype):
    fields = {"dtype": dtype, "param_dtype": param_dtype}
    linen_module = linen.Embed(rows, 3, **fields)

    def build(rngs):
        return factory.Embed(rows, 3, **fields, rngs=rngs)

    check(linen_module, build, jnp.zeros((2, 4), jnp.int32) + (rows > 1) * 2)
    with constant_key():
        variables = linen_module.init(jax.random.key(0), jnp.zeros(2, jnp.int32))
        module = build(nnx.Rngs(0))
    module.embedding.set_value(variables["params"]["embedding"])
    query = array(2, 3)
    expected = linen_module.apply(variables, query, method="attend")
    assert_same_bits(expected, module.attend(query))


def test_native_embed_attends_in_the_tables_dtype_where_linen_promotes():
    fields = {"param_dtype": jnp.bfloat16, "rngs": nnx.Rngs(0)}
    query = array(2, 3)
    assert nnx.Embed(5, 3, **fields).attend(query).dtype == jnp.bfloat16
    assert nn.Embed(5, 3, **fields).attend(query).dtype == jnp.float32


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (((6, 3),), "needs einsum_str"),
        (((6, 3), "ab,bc"), "explicit result"),
        (((6, 3), "ab->ba"), "two operands"),
        (((6, 3), "a,...b->...b"), "one distinct letter"),
        (((6, 3), "a,ab,b->a"), "two operands"),
        (((6, 3), "a,abc->bc"), "one distinct letter"),
    ],
)
def test_einsum_refuses_equations_without_a_bias_shape(args, message):
    with pytest.raises(ValueError, match=message):
        nn.Einsum(*args, rngs=nnx.Rngs(0))


def test_einsum_takes_its_equation_once():
    layer = nn.Einsum((6, 3), use_bias=False, rngs=nnx.Rngs(0))
    assert layer(array(2, 6), "ab,bc->ac").shape == (2, 3)
    with pytest.raises(ValueError, match="found neither"):
        layer(array(2, 6))
    layer = nn.Einsum((6, 3), "ab,bc->ac", rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match="found both"):
        layer(array(2, 6), "ab,bc->ac")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"feature_group_count": 2}, NotImplementedError, "feature_group_count=1"),
        ({"mask": jnp.ones((2, 2))}, ValueError, "expected a mask of shape"),
        ({"kernel_size": (3, 3), "padding": "CAUSAL"}, ValueError, "one axis"),
        ({"padding": (1, 2)}, ValueError, "expected padding"),
    ],
)
def test_conv_local_refuses_what_linen_refuses(fields, error, message):
    fields = {"kernel_size": (3,), **fields}
    shape = (2, 5, 6) if len(fields["kernel_size"]) == 1 else (2, 5, 5, 6)
    with pytest.raises(error, match=message):
        nn.ConvLocal(4, **fields, input_shape=shape, rngs=nnx.Rngs(0))
