"""What the layer rules emit constructs under flax.nnx, with Linen's parameter shapes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm
from tests.constructs.convert import text

X = jnp.ones((2, 6))
IMAGE = jnp.ones((2, 8, 8, 6))

LAYERS = [
    ("nn.Dense(4)", X),
    ("nn.Dense(4, False, jnp.bfloat16)", X),
    ("nn.Dense(4, dot_general=jax.lax.dot_general)", X),
    ("nn.Dense(4, **{'use_bias': False})", X),
    ("nn.DenseGeneral((2, 3))", X),
    ("nn.Einsum((6, 4), 'ab,bc->ac')", X),
    ("nn.Einsum((6, 4), 'ab,bc->ac', use_bias=False)", X),
    ("nn.Conv(4, (3, 3), 2, padding='VALID')", IMAGE),
    ("nn.ConvTranspose(features=4, kernel_size=(3, 3))", IMAGE),
    ("nn.ConvLocal(4, (3, 3))", IMAGE),
    ("nn.LayerNorm(1e-5, jnp.bfloat16)", X),
    ("nn.LayerNorm(reduction_axes=(0, 1))", X),
    ("nn.LayerNorm(feature_axes=(-2, -1), reduction_axes=(-2, -1))", IMAGE),
    ("nn.RMSNorm()", X),
    ("nn.RMSNorm(force_float32_reductions=False)", X),
    ("nn.InstanceNorm()", IMAGE),
    ("nn.GroupNorm(3)", IMAGE),
    ("nn.GroupNorm(3, reduction_axes=(1, 2, 3))", IMAGE),
    ("nn.BatchNorm(use_running_average=False)", X),
    ("nn.BatchNorm(True, axis=1)", IMAGE),
    ("nn.Dropout(0.5, deterministic=True)", X),
    ("nn.Embed(5, 4)", jnp.ones((2, 3), int)),
    ("nn.Embed(5, 4, param_dtype=jnp.float16)", jnp.ones((2, 3), int)),
    ("nn.SelfAttention(2)", jnp.ones((2, 3, 6))),
    ("nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=8)", jnp.ones((2, 3, 6))),
]


def _shapes(tree: Any) -> dict[Any, Any]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): (leaf.shape, leaf.dtype) for path, leaf in leaves}


@pytest.mark.filterwarnings("ignore:SelfAttention will be deprecated:DeprecationWarning")
@pytest.mark.parametrize(("expression", "x"), LAYERS)
def test_the_emitted_layer_has_linens_parameters_and_output(expression: str, x: jax.Array) -> None:
    scope = {"nn": linen, "jnp": jnp, "jax": jax}
    before = eval(expression, scope)
    params = before.init(jax.random.key(0), x).get("params", {})
    code = text(expression, {"in_features": "in_features", "in_shape": "in_shape"})
    if "feature_axes=(" in expression or "axis=1" in expression:
        code = text(expression, {"in_shape": "in_shape"})
    scope = {"nnx": nnx, "nnm": nnm, "jnp": jnp, "jax": jax, "rngs": nnx.Rngs(0)}
    after = eval(code, {**scope, "in_features": x.shape[-1], "in_shape": x.shape})
    assert _shapes(nnx.to_pure_dict(nnx.state(after, nnx.Param))) == _shapes(params)
    old = before.init_with_output(jax.random.key(0), x)[0]
    new = after(x)
    assert (new.shape, new.dtype) == (old.shape, old.dtype)
