"""Attention layers and functions.

The layers become those of ``nnx_migrate.nn``: Linen's arguments, call signature and arithmetic
(``nnx.MultiHeadAttention`` computes logits in float32 and ignores ``precision`` when there is no
dropout) plus ``in_features`` and, where keys have another size, ``in_kv_features``, and where
values do, ``in_v_features``. With ``decode=True`` the cache starts at ``init_cache(shape)``.

``dot_product_attention`` and ``dot_product_attention_weights`` become Linen's arithmetic in
``nnx_migrate.nn``; the mask functions compute the same in ``flax.nnx``
(``combine_masks`` raises ValueError there for masks of different rank, Linen AssertionError).

flax 0.12.8 and 0.12.12: linen/attention.py, nnx/nn/attention.py.
"""

from __future__ import annotations

from dataclasses import replace

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import is_none
from nnx_migrate.abstract.values import Unknown, Value
from nnx_migrate.constructs.common.base import linen
from nnx_migrate.constructs.common.layers import own
from nnx_migrate.constructs.common.references import in_namespace
from nnx_migrate.constructs.common.rules import Construct, Example, Layer, NameRule
from nnx_migrate.constructs.common.shapes import Outcome, ShapeCall, Sizes

_FIELDS = (
    *("num_heads", "dtype", "param_dtype", "qkv_features", "out_features", "broadcast_dropout"),
    *("dropout_rate", "deterministic", "precision", "kernel_init", "out_kernel_init", "bias_init"),
    *("out_bias_init", "use_bias", "attention_fn", "decode", "normalize_qk"),
    *("force_fp32_for_softmax", "qkv_dot_general", "out_dot_general", "qkv_dot_general_cls"),
    *("out_dot_general_cls", "qk_attn_weights_einsum_cls", "attn_weights_value_einsum_cls"),
)
_CLS = "port the quantised attention by hand"


def shape(call: ShapeCall) -> Outcome:
    """The query's shape with ``out_features`` as its last axis."""
    query = call.first
    sizes: Sizes = {"in_features": query.axis(-1) if query else None}
    if not call.layer.symbol.endswith("SelfAttention"):
        sizes |= _memory(call, sizes["in_features"])
    out = call.size("out_features") or sizes["in_features"]
    return sizes, query.with_last(out) if query else Unknown("input unknown")


def _memory(call: ShapeCall, width: Expr | None) -> Sizes:
    """The size of the keys, where it is not known to be ``width``, that of the queries."""
    keys = [call.kwargs[one] for one in ("inputs_k", "inputs_kv") if one in call.kwargs]
    keys_node = call.args[1] if len(call.args) > 1 else next(iter(keys), None)
    if keys_node is None or is_none(keys_node) or keys_node is next(iter(call.args), None):
        return {}
    memory = call.analysis.array(keys_node)
    last_axis = memory.axis(-1) if memory is not None else None
    sizes = {} if last_axis is not None and last_axis == width else {"in_kv_features": last_axis}
    return sizes | _values(call, keys_node, last_axis)


def _values(call: ShapeCall, keys: Value, width: Expr | None) -> Sizes:
    """The size of the values, where it is not known to be ``width``, that of the keys."""
    values_node = call.args[2] if len(call.args) > 2 else call.kwargs.get("inputs_v")
    if values_node is None or is_none(values_node) or values_node is keys:
        return {}
    values = call.analysis.array(values_node)
    last_axis = values.axis(-1) if values is not None else None
    return {} if last_axis is not None and last_axis == width else {"in_v_features": last_axis}


def _named(name: str) -> Layer:
    return replace(
        MULTI_HEAD_ATTENTION,
        name=name,
        target=f"nnm.{name}",
        example=Example(
            f"nn.{name}(num_heads=4, qkv_features=32)",
            f"nnm.{name}(num_heads=4, qkv_features=32, in_features=in_features, rngs=rngs)",
        ),
    )


MULTI_HEAD_ATTENTION = Layer(
    name="MultiHeadAttention",
    target="nnm.MultiHeadAttention",
    fields=_FIELDS,
    example=Example(
        "nn.MultiHeadAttention(num_heads=4)",
        "nnm.MultiHeadAttention(num_heads=4, in_features=in_features, rngs=rngs)",
    ),
    build=own,
    shape=shape,
    required_fields=("num_heads",),
    optional_sizes=("in_kv_features", "in_v_features"),
    size_inputs={"in_kv_features": "inputs_k", "in_v_features": "inputs_v"},
    recipes={field: _CLS for field in _FIELDS if field.endswith("_cls")},
    at_call=("deterministic",),
)

CONSTRUCT = Construct(
    __doc__,
    rules=(
        _named("MultiHeadDotProductAttention"),
        MULTI_HEAD_ATTENTION,
        _named("SelfAttention"),
        NameRule(
            name="attention_functions",
            symbols=linen("dot_product_attention", "dot_product_attention_weights"),
            example=Example(
                "nn.dot_product_attention(q, k, v)", "nnm.dot_product_attention(q, k, v)"
            ),
            reference=in_namespace("nnm"),
        ),
        NameRule(
            name="attention_masks",
            symbols=linen("make_attention_mask", "make_causal_mask", "combine_masks"),
            example=Example("nn.make_causal_mask(x)", "nnx.make_causal_mask(x)"),
            reference=in_namespace("nnx"),
            is_same=True,
        ),
    ),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(x[..., 0])
        x = x + nn.SelfAttention(num_heads=2)(nn.LayerNorm()(x), mask=mask)
        return nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=16)(x, x)
""",
    inputs="jnp.linspace(-1, 1, 80).reshape(2, 5, 8)",
    lazy=(
        """
class Model(nn.Module):
    products: type

    @nn.compact
    def __call__(self, x):
        return nn.MultiHeadAttention(num_heads=2, qkv_dot_general_cls=self.products)(x)
""",
    ),
)
