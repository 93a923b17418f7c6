"""Conv, ConvTranspose and ConvLocal.

``nn.Conv(f, k)`` becomes ``nnx.Conv(in_features, f, k)`` and likewise ``nn.ConvTranspose``: the
same program, initial values and parameter names. ``conv_general_dilated`` goes through
``nnm.factory``, which adapts the function. ``ConvLocal`` has no NNX counterpart: ``nnm.ConvLocal``
takes Linen's arguments and the whole input shape (its kernel depends on it).

flax 0.12.8 and 0.12.12: linen/linear.py, nnx/nn/linear.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.layers import Layer, native_rule, own_rule

_CLS = "pass an equivalent `conv_general_dilated` function"

_CONV_FIELDS = (
    *("features", "kernel_size", "strides", "padding", "input_dilation", "kernel_dilation"),
    *("feature_group_count", "use_bias", "mask", "dtype", "param_dtype", "precision"),
    *("kernel_init", "bias_init", "promote_dtype", "conv_general_dilated"),
    "conv_general_dilated_cls",
)

CONV = Layer(
    name="Conv",
    target="nnx.Conv",
    fields=_CONV_FIELDS,
    required=("features", "kernel_size"),
    positional=("features", "kernel_size", "strides"),
    keywords={"features": "out_features"},
    functions=("promote_dtype", "conv_general_dilated"),
    unsupported={"conv_general_dilated_cls": _CLS},
)

CONV_TRANSPOSE = Layer(
    name="ConvTranspose",
    target="nnx.ConvTranspose",
    fields=(
        *("features", "kernel_size", "strides", "padding", "kernel_dilation", "use_bias", "mask"),
        *("dtype", "param_dtype", "precision", "kernel_init", "bias_init", "transpose_kernel"),
        *("promote_dtype", "preferred_element_type"),
    ),
    required=("features", "kernel_size"),
    positional=("features", "kernel_size", "strides"),
    keywords={"features": "out_features"},
    functions=("promote_dtype",),
)

CONV_LOCAL = Layer(
    name="ConvLocal",
    target="nnm.ConvLocal",
    fields=_CONV_FIELDS,
    required=("features", "kernel_size"),
    sizes=("in_shape",),
    unsupported={"conv_general_dilated_cls": _CLS},
)

RULES = (
    native_rule(
        CONV,
        "nn.Conv(features=32, kernel_size=(3, 3), padding='VALID')",
        "nnx.Conv(in_features, 32, kernel_size=(3, 3), padding='VALID', rngs=rngs)",
    ),
    native_rule(
        CONV_TRANSPOSE,
        "nn.ConvTranspose(8, (3,), (2,))",
        "nnx.ConvTranspose(in_features, 8, (3,), (2,), rngs=rngs)",
    ),
    own_rule(
        CONV_LOCAL,
        "nn.ConvLocal(8, (3,))",
        "nnm.ConvLocal(8, (3,), input_shape=in_shape, rngs=rngs)",
    ),
)
