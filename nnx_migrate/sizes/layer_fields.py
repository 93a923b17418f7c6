"""The fields of Linen's built-in layers, in their order."""

from __future__ import annotations

# Positional order of each constructor, as far as size inference needs it.
FIELDS: dict[str, tuple[str, ...]] = {
    "Dense": ("features", "use_bias"),
    "DenseGeneral": ("features", "axis", "batch_dims", "use_bias"),
    "Einsum": ("shape", "einsum_str", "use_bias"),
    "Conv": ("features", "kernel_size", "strides", "padding", "input_dilation", "kernel_dilation"),
    "ConvLocal": ("features", "kernel_size", "strides", "padding"),
    "ConvTranspose": ("features", "kernel_size", "strides", "padding", "kernel_dilation"),
    "Embed": ("num_embeddings", "features"),
    "LayerNorm": (),
    "RMSNorm": (),
    "BatchNorm": ("use_running_average", "axis"),
    "GroupNorm": ("num_groups", "group_size"),
    "InstanceNorm": (),
    "Dropout": ("rate", "broadcast_dims", "deterministic"),
    "PReLU": (),
    "MultiHeadDotProductAttention": ("num_heads", "dtype", "param_dtype", "qkv_features"),
    "MultiHeadAttention": ("num_heads", "dtype", "param_dtype", "qkv_features"),
    "SelfAttention": ("num_heads", "dtype", "param_dtype", "qkv_features"),
    "LSTMCell": ("features",),
    "OptimizedLSTMCell": ("features",),
    "GRUCell": ("features",),
    "MGUCell": ("features",),
    "SimpleCell": ("features",),
    "ConvLSTMCell": ("features", "kernel_size", "strides", "padding"),
    "RNN": ("cell", "time_major", "return_carry", "reverse", "keep_order"),
    "Bidirectional": ("forward_rnn", "backward_rnn", "merge_fn", "time_major", "return_carry"),
    "Sequential": ("layers",),
    "BatchApply": ("f", "num_input_dims"),
}
CELLS = frozenset(name for name in FIELDS if name.endswith("Cell"))


def is_layer(symbol: str | None) -> bool:
    """Whether a symbol is a built-in Linen layer."""
    if symbol is None or not symbol.startswith("flax.linen."):
        return False
    return symbol.removeprefix("flax.linen.") in FIELDS
