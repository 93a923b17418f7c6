"""Built-in layers: constructor calls before and after, and the ones that are refused."""

from __future__ import annotations

import pytest

from nnx_migrate.constructs.base import Code
from nnx_migrate.model import Confidence
from tests.constructs.convert import converted, refusal, text, text_of

SHAPE = {"in_shape": "in_shape"}
BATCHED = {"in_features": "in_features", "batch_shape": "(b, 3)"}

REWRITES = [
    # Dense
    ("nn.Dense(64)", "nnx.Linear(in_features, 64, rngs=rngs)"),
    ("nn.Dense(features=self.f)", "nnx.Linear(in_features, self.f, rngs=rngs)"),
    ("nn.Dense(8, False)", "nnx.Linear(in_features, 8, use_bias=False, rngs=rngs)"),
    ("nn.Dense(8, name='out')", "nnx.Linear(in_features, 8, rngs=rngs)"),
    ("nn.Dense(8, parent=None)", "nnx.Linear(in_features, 8, rngs=rngs)"),
    (
        "nn.Dense(use_bias=False, features=8, dtype=jnp.bfloat16)",
        "nnx.Linear(in_features, 8, use_bias=False, dtype=jnp.bfloat16, rngs=rngs)",
    ),
    (
        "nn.Dense(8, kernel_init=nn.initializers.normal(0.02))",
        "nnx.Linear(in_features, 8, kernel_init=nnx.initializers.normal(0.02), rngs=rngs)",
    ),
    (
        "nn.Dense(8, kernel_init=jax.nn.initializers.zeros)",
        "nnx.Linear(in_features, 8, kernel_init=jax.nn.initializers.zeros, rngs=rngs)",
    ),
    ("nn.Dense(8, dot_general=None)", "nnx.Linear(in_features, 8, rngs=rngs)"),
    ("nn.Dense(8, dot_general_cls=None)", "nnx.Linear(in_features, 8, rngs=rngs)"),
    (
        "nn.Dense(8, dot_general=self.dot)",
        "nnm.factory.Dense(8, dot_general=self.dot, in_features=in_features, rngs=rngs)",
    ),
    ("nn.Dense(*args)", "nnm.factory.Dense(*args, in_features=in_features, rngs=rngs)"),
    # DenseGeneral, Einsum
    (
        "nn.DenseGeneral(features=(4, 8), axis=-1, name='q')",
        "nnx.LinearGeneral(in_features, (4, 8), axis=-1, rngs=rngs)",
    ),
    (
        "nn.DenseGeneral(4, batch_dims=())",
        "nnx.LinearGeneral(in_features, 4, rngs=rngs)",
    ),
    (
        "nn.Einsum((3, 4), 'ab,bc->ac')",
        "nnm.Einsum((3, 4), 'ab,bc->ac', rngs=rngs)",
    ),
    (
        "nn.Einsum((3, 4), 'ab,bc->ac', use_bias=False, precision=p)",
        "nnx.Einsum('ab,bc->ac', (3, 4), precision=p, rngs=rngs)",
    ),
    ("nn.Einsum((3, 4), use_bias=False)", "nnm.Einsum((3, 4), use_bias=False, rngs=rngs)"),
    # Conv
    (
        "nn.Conv(32, (3, 3), (2, 2), 'VALID')",
        "nnx.Conv(in_features, 32, (3, 3), (2, 2), padding='VALID', rngs=rngs)",
    ),
    (
        "nn.Conv(kernel_size=(3,), features=4, strides=2)",
        "nnx.Conv(in_features, 4, kernel_size=(3,), strides=2, rngs=rngs)",
    ),
    (
        "nn.Conv(4, (3,), conv_general_dilated=g)",
        "nnm.factory.Conv(4, (3,), conv_general_dilated=g, in_features=in_features, rngs=rngs)",
    ),
    (
        "nn.ConvTranspose(4, (3,), transpose_kernel=True)",
        "nnx.ConvTranspose(in_features, 4, (3,), transpose_kernel=True, rngs=rngs)",
    ),
    # Embed
    ("nn.Embed(10, 4, dtype=d)", "nnx.Embed(10, 4, dtype=d, rngs=rngs)"),
    ("nn.Embed(10, 4, param_dtype=d)", "nnm.Embed(10, 4, param_dtype=d, rngs=rngs)"),
    ("nn.Embed(10, features=4)", "nnx.Embed(10, features=4, rngs=rngs)"),
    # norms
    ("nn.LayerNorm()", "nnx.LayerNorm(in_features, rngs=rngs)"),
    ("nn.LayerNorm(1e-5)", "nnx.LayerNorm(in_features, epsilon=1e-5, rngs=rngs)"),
    (
        "nn.LayerNorm(dtype=self.dtype)",
        "nnx.LayerNorm(in_features, dtype=self.dtype, promote_dtype=nnm.keep_dtype, rngs=rngs)",
    ),
    (
        "nn.LayerNorm(reduction_axes=(-2, -1), feature_axes=-1)",
        (
            "nnm.LayerNorm(reduction_axes=(-2, -1), feature_axes=-1, "
            "in_features=in_features, rngs=rngs)"
        ),
    ),
    (
        "nn.RMSNorm(force_float32_reductions=False)",
        "nnm.RMSNorm(force_float32_reductions=False, in_features=in_features, rngs=rngs)",
    ),
    (
        "nn.RMSNorm(force_float32_reductions=True)",
        "nnx.RMSNorm(in_features, rngs=rngs)",
    ),
    (
        "nn.GroupNorm(num_groups=None, group_size=8)",
        "nnx.GroupNorm(in_features, num_groups=None, group_size=8, rngs=rngs)",
    ),
    (
        "nn.GroupNorm(4, reduction_axes=(1, 2))",
        "nnm.GroupNorm(4, reduction_axes=(1, 2), in_features=in_features, rngs=rngs)",
    ),
    (
        "nn.BatchNorm(not train)",
        (
            "nnx.BatchNorm(in_features, use_running_average=not train, "
            "promote_dtype=nnm.keep_dtype, rngs=rngs)"
        ),
    ),
    (
        "nn.BatchNorm()",
        (
            "nnx.BatchNorm(in_features, use_running_average=None, "
            "promote_dtype=nnm.keep_dtype, rngs=rngs)"
        ),
    ),
    # without a size
    ("nn.Dropout(0.1)", "nnm.Dropout(0.1, rngs=rngs)"),
    (
        "nn.Dropout(rate=r, broadcast_dims=(1,))",
        "nnm.Dropout(rate=r, broadcast_dims=(1,), rngs=rngs)",
    ),
    ("nn.PReLU()", "nnx.PReLU()"),
    ("nn.PReLU(jnp.float16, 0.1)", "nnx.PReLU(param_dtype=jnp.float16, negative_slope_init=0.1)"),
    # recurrent
    ("nn.LSTMCell(8)", "nnm.LSTMCell(8, in_features=in_features, rngs=rngs)"),
    ("nn.RNN(self.cell, name='r')", "nnm.RNN(self.cell)"),
    (
        "nn.RNN(nn.GRUCell(8))",
        "nnm.RNN(nnm.GRUCell(8, in_features=in_features, rngs=rngs))",
    ),
    (
        "nn.Sequential([nn.Dense(8), nn.relu])",
        "nnm.Sequential([nnx.Linear(in_features, 8, rngs=rngs), nnx.relu])",
    ),
    # attention
    (
        "nn.SelfAttention(num_heads=4, decode=True, name='a')",
        "nnm.SelfAttention(num_heads=4, decode=True, in_features=in_features, rngs=rngs)",
    ),
]


@pytest.mark.parametrize(("before", "after"), REWRITES)
def test_a_layer_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "sizes", "after"),
    [
        (
            "nn.ConvLocal(8, (3,))",
            SHAPE,
            "nnm.ConvLocal(8, (3,), input_shape=in_shape, rngs=rngs)",
        ),
        (
            "nn.LayerNorm(feature_axes=(1, -1), reduction_axes=(1, -1))",
            SHAPE,
            (
                "nnm.LayerNorm(feature_axes=(1, -1), reduction_axes=(1, -1), "
                "in_features=((in_shape)[1], (in_shape)[-1]), rngs=rngs)"
            ),
        ),
        (
            "nn.BatchNorm(axis=1)",
            SHAPE,
            "nnm.BatchNorm(axis=1, in_features=(in_shape)[1], rngs=rngs)",
        ),
        (
            "nn.DenseGeneral(4, batch_dims=(0, 1))",
            BATCHED,
            "nnx.LinearGeneral(in_features, 4, batch_axis={0: b, 1: 3}, rngs=rngs)",
        ),
        (
            "nn.DenseGeneral(4, batch_dims=dims)",
            BATCHED,
            (
                "nnm.factory.DenseGeneral(4, batch_dims=dims, in_features=in_features, "
                "batch_sizes=(b, 3), rngs=rngs)"
            ),
        ),
        (
            "nn.MultiHeadAttention(4)",
            {"in_features": "q", "in_kv_features": "k"},
            "nnm.MultiHeadAttention(4, in_features=q, in_kv_features=k, rngs=rngs)",
        ),
    ],
)
def test_a_layer_takes_the_sizes_it_needs(before: str, sizes: dict[str, str], after: str) -> None:
    assert text(before, sizes) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.Dense()", "without 'features'"),
        ("nn.Dense(use_bias=False)", "without 'features'"),
        ("nn.Dense(8, feature=3)", "unknown argument 'feature'"),
        ("nn.Dense(8, features=3)", "given twice"),
        ("nn.Dense(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)", "13 positional arguments"),
        ("nn.Dense(8, dot_general_cls=nn.Fp8DotGeneralOp)", "dot_general_cls"),
        ("nn.DenseGeneral(8, dot_general_cls=c)", "dot_general_cls"),
        ("nn.DenseGeneral(8, batch_dims=(0,))", "batch_shape"),
        ("nn.Einsum()", "without 'shape'"),
        ("nn.Conv(8)", "without 'kernel_size'"),
        ("nn.Conv(8, (3,), conv_general_dilated_cls=c)", "conv_general_dilated_cls"),
        ("nn.Conv(8, (3,), stride=2)", "unknown argument 'stride'"),
        ("nn.ConvTranspose(kernel_size=3)", "without 'features'"),
        ("nn.ConvLocal(8, (3,))", "in_shape"),
        ("nn.Embed(10)", "without 'features'"),
        ("nn.LayerNorm(eps=1e-5)", "unknown argument 'eps'"),
        ("nn.Dropout()", "without 'rate'"),
        ("nn.Dropout(0.1, rng='x')", "unknown argument 'rng'"),
        ("nn.PReLU(slope=0.1)", "unknown argument 'slope'"),
        ("nn.LSTMCell()", "without 'features'"),
        ("nn.RNN()", "without 'cell'"),
        ("nn.RNN(nn.LSTMCell())", "without 'features'"),
        ("nn.Sequential()", "without 'layers'"),
        ("nn.Bidirectional(a)", "without 'backward_rnn'"),
        ("nn.SelfAttention(4, qkv_dot_general_cls=c)", "qkv_dot_general_cls"),
        ("nn.MultiHeadAttention()", "without 'num_heads'"),
        ("nn.Fp8DotGeneral()", "8-bit"),
    ],
)
def test_a_call_that_no_rule_understands_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


@pytest.mark.parametrize(
    "before",
    [
        *("nn.Dense(8)", "nn.DenseGeneral(8)", "nn.Conv(8, 3)", "nn.ConvTranspose(8, 3)"),
        *("nn.LayerNorm()", "nn.BatchNorm()", "nn.BatchNorm(axis=1)", "nn.GRUCell(8)"),
        *("nn.LayerNorm(feature_axes=axes)", "nn.SelfAttention(4)", "nn.Dense(**options)"),
    ],
)
def test_an_unknown_size_is_refused(before: str) -> None:
    assert refusal(before, {}).reason.startswith("size unknown")


def test_unpacked_keywords_go_through_the_factory_and_ask_for_a_look() -> None:
    found = converted("nn.Dense(8, **options)")
    assert isinstance(found, Code)
    assert text_of(found) == "nnm.factory.Dense(8, **options, in_features=in_features, rngs=rngs)"
    assert found.findings
    assert found.imports == {"nnm"}
    assert found.confidence is Confidence.REVIEW


@pytest.mark.parametrize(
    ("before", "imports"),
    [
        ("nn.Dense(8)", {"nnx"}),
        ("nn.LayerNorm(dtype=d)", {"nnx", "nnm"}),
        ("nn.Dropout(0.1)", {"nnm"}),
        ("nn.Dense(8, kernel_init=nn.zeros)", {"nnx"}),
        ("nn.Einsum((3, 4), 'ab,bc->ac', use_bias=False)", {"nnx"}),
    ],
)
def test_the_code_names_the_imports_it_needs(before: str, imports: set[str]) -> None:
    found = converted(before)
    assert isinstance(found, Code)
    assert found.imports == imports
