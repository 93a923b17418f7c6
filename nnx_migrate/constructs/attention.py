"""Attention layers and functions.

The layers become those of ``nnx_migrate.nn``: Linen's arguments, call signature and arithmetic
(``nnx.MultiHeadAttention`` computes logits in float32 and ignores ``precision`` when there is no
dropout) plus ``in_features`` and, where keys have another size, ``in_kv_features``. With
``decode=True`` the cache starts at ``init_cache(shape)``.

``dot_product_attention`` and ``dot_product_attention_weights`` become Linen's arithmetic in
``nnx_migrate.nn``; the mask functions compute the same in ``flax.nnx``
(``combine_masks`` raises ValueError there for masks of different rank, Linen AssertionError).

flax 0.12.8 and 0.12.12: linen/attention.py, nnx/nn/attention.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.base import Example, NameRule, linen
from nnx_migrate.constructs.layers import Layer, own_rule
from nnx_migrate.constructs.references import renamed

_FIELDS = (
    *("num_heads", "dtype", "param_dtype", "qkv_features", "out_features", "broadcast_dropout"),
    *("dropout_rate", "deterministic", "precision", "kernel_init", "out_kernel_init", "bias_init"),
    *("out_bias_init", "use_bias", "attention_fn", "decode", "normalize_qk"),
    *("force_fp32_for_softmax", "qkv_dot_general", "out_dot_general", "qkv_dot_general_cls"),
    *("out_dot_general_cls", "qk_attn_weights_einsum_cls", "attn_weights_value_einsum_cls"),
)
_CLS = "port the quantised attention by hand"


def _layer(name: str) -> Layer:
    return Layer(
        name=name,
        target=f"nnm.{name}",
        fields=_FIELDS,
        required=("num_heads",),
        optional_sizes=("in_kv_features",),
        unsupported={field: _CLS for field in _FIELDS if field.endswith("_cls")},
    )


RULES = (
    *(
        own_rule(
            _layer(name),
            f"nn.{name}(num_heads=4, qkv_features=32)",
            f"nnm.{name}(num_heads=4, qkv_features=32, in_features=in_features, rngs=rngs)",
        )
        for name in ("MultiHeadDotProductAttention", "MultiHeadAttention", "SelfAttention")
    ),
    NameRule(
        name="attention_functions",
        symbols=linen("dot_product_attention", "dot_product_attention_weights"),
        example=Example("nn.dot_product_attention(q, k, v)", "nnm.dot_product_attention(q, k, v)"),
        reference=renamed("nnm"),
    ),
    NameRule(
        name="attention_masks",
        symbols=linen("make_attention_mask", "make_causal_mask", "combine_masks"),
        example=Example("nn.make_causal_mask(x)", "nnx.make_causal_mask(x)"),
        reference=renamed("nnx"),
    ),
)
