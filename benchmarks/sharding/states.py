"""Large states without arrays: only shapes and logical names, like those of a language model."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import AbstractMesh, AxisType

from nnx_migrate.sharding import load_axis_rules

# Names of the parameters of one layer: MLA attention, a dense and a mixture-of-experts block.
LAYER: dict[str, tuple[str | None, ...]] = {
    "pre_norm": ("norm",),
    "post_norm": ("norm",),
    "query": ("embed", "q_heads", "kv"),
    "wkv_a": ("embed", "kv_lora_up_proj"),
    "wkv_b": ("kv_lora", "kv_heads", "kv_head_dim"),
    "out": ("heads", "kv", "embed"),
    "wi": ("embed", "mlp"),
    "wo": ("mlp", "embed"),
    "gate": ("embed_moe", None),
    "experts": ("exp", "embed_moe", "mlp_moe"),
}
RULES = load_axis_rules("default").logical_axis_rules
# As JSON and YAML give them.
LISTS = [[name, list(axes) if isinstance(axes, tuple) else axes] for name, axes in RULES]
# No axis of size 1: both sides have the same axes to name.
MESH = AbstractMesh(
    (2,) * 12, load_axis_rules("default").mesh_axes, axis_types=(AxisType.Auto,) * 12
)
# Stock NNX can only make shardings by rules without repeats and conflicts.
PLAIN_RULES = (
    ("norm", "tensor"),
    ("embed", "fsdp"),
    ("embed_moe", "fsdp"),
    ("q_heads", "tensor"),
    ("kv_heads", "tensor"),
    ("heads", "tensor"),
    ("kv", None),
    ("kv_head_dim", None),
    ("kv_lora", "context"),
    ("kv_lora_up_proj", None),
    ("mlp", "tensor"),
    ("mlp_moe", "tensor"),
    ("exp", "expert"),
)


def names_of(leaf: int) -> tuple[str | None, ...]:
    """Logical names of one leaf."""
    return list(LAYER.values())[leaf % len(LAYER)]


def state(leaves: int) -> Any:
    """An nnx.State of ``leaves`` abstract parameters with logical names."""
    layers: dict[str, dict[str, Any]] = {}
    with nnx.use_eager_sharding(False):
        for leaf in range(leaves):
            layer, place = divmod(leaf, len(LAYER))
            name = list(LAYER)[place]
            layers.setdefault(f"layers_{layer}", {})[name] = _param(names_of(leaf))
    return nnx.State(layers)


def _param(names: tuple[str | None, ...]) -> nnx.Param[Any]:
    shape = jax.ShapeDtypeStruct((4096,) * len(names), jnp.float32)
    return nnx.Param(shape, out_sharding=names)
