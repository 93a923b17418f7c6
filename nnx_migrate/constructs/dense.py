"""Dense, DenseGeneral and Einsum: matrix products with a kernel and a bias.

``nn.Dense(f)`` becomes ``nnx.Linear(in_features, f)`` and ``nn.DenseGeneral`` becomes
``nnx.LinearGeneral``: the same program, initial values and parameter names. The input sizes that
Linen takes from the first input are constructor arguments in NNX; those of several axes come as a
tuple in ascending axis position (Linen sorts the axes). A ``dot_general`` or ``promote_dtype``
function goes through ``nnm.factory``, which adapts it to NNX's calling convention.

``nn.Einsum`` infers its bias shape; ``nnm.Einsum`` does the same. Without a bias the native
``nnx.Einsum`` is the same layer with the first two arguments exchanged.

flax 0.12.8 and 0.12.12: linen/linear.py, nnx/nn/linear.py.
"""

from __future__ import annotations

import ast

from nnx_migrate.constructs.base import (
    Code,
    Example,
    LayerCall,
    LayerRule,
    Refusal,
    is_literal,
    linen,
)
from nnx_migrate.constructs.layers import (
    Layer,
    factory,
    has_function,
    missing_size,
    native_call,
    native_rule,
    own,
    read,
    reference,
)
from nnx_migrate.edit.expressions import Expression, elements_of, mapping

_CLS = "pass an equivalent `dot_general` function, or port the quantised product by hand"

DENSE = Layer(
    name="Dense",
    target="nnx.Linear",
    fields=(
        *("features", "use_bias", "dtype", "param_dtype", "precision", "kernel_init", "bias_init"),
        *("promote_dtype", "dot_general", "dot_general_cls"),
    ),
    required=("features",),
    positional=("features",),
    keywords={"features": "out_features"},
    functions=("promote_dtype", "dot_general"),
    unsupported={"dot_general_cls": _CLS},
)

DENSE_GENERAL = Layer(
    name="DenseGeneral",
    target="nnx.LinearGeneral",
    fields=(
        *("features", "axis", "batch_dims", "use_bias", "dtype", "param_dtype", "kernel_init"),
        *("bias_init", "precision", "promote_dtype", "dot_general", "dot_general_cls"),
    ),
    required=("features",),
    optional_sizes=("batch_shape",),
    positional=("features",),
    keywords={"features": "out_features"},
    functions=("promote_dtype", "dot_general"),
    unsupported={"dot_general_cls": _CLS},
)

EINSUM = Layer(
    name="Einsum",
    target="nnx.Einsum",
    fields=(
        *("shape", "einsum_str", "use_bias", "dtype", "param_dtype", "precision", "kernel_init"),
        *("bias_init", "promote_dtype", "preferred_element_type"),
    ),
    required=("shape",),
    sizes=(),
    keywords={"shape": "kernel_shape"},
    functions=("promote_dtype",),
)


def convert_dense_general(call: LayerCall) -> Code | Refusal:
    """``batch_dims=(0,)`` -> ``batch_axis={0: size}``; the rest by name."""
    arguments = read(DENSE_GENERAL, call)
    if isinstance(arguments, Refusal):
        return arguments
    batch = arguments.given.get("batch_dims")
    has_batch = batch is not None and not (isinstance(batch, ast.Tuple) and not batch.elts)
    if has_batch and "batch_shape" not in call.sizes:
        return Refusal(
            "size unknown: batch_shape of DenseGeneral",
            "build it by hand as `nnx.LinearGeneral` with batch_axis={axis: size}",
            batch,
        )
    if arguments.open or has_function(DENSE_GENERAL, arguments):
        return factory(DENSE_GENERAL, call)
    missing = missing_size(DENSE_GENERAL, call)
    if missing:
        return missing
    given = {name: value for name, value in arguments.given.items() if name != "batch_dims"}
    rest = type(arguments)(given)
    if not has_batch or batch is None:
        return native_call(DENSE_GENERAL, call, rest)
    sizes = _batch_axis(batch, call)
    if sizes is None:
        return factory(DENSE_GENERAL, call)
    return native_call(DENSE_GENERAL, call, rest, {"batch_axis": sizes})


def _batch_axis(batch: ast.expr, call: LayerCall) -> Expression | None:
    """``{0: b}`` for literal ``batch_dims`` and a literal tuple of sizes."""
    axes = batch.elts if isinstance(batch, ast.Tuple | ast.List) else [batch]
    sizes = elements_of(call.size("batch_shape"))
    if sizes is None or len(sizes) != len(axes):
        return None
    return mapping(zip(map(call.source.render, axes), sizes, strict=True))


def convert_einsum(call: LayerCall) -> Code | Refusal:
    """Native without a bias, else the layer that infers Linen's bias shape."""
    arguments = read(EINSUM, call)
    if isinstance(arguments, Refusal):
        return arguments
    given = arguments.given
    biasless = is_literal(given.get("use_bias"), False)
    if arguments.open or not biasless or has_function(EINSUM, arguments):
        return own(EINSUM, call)
    if "einsum_str" not in given or is_literal(given["einsum_str"], None):
        return own(EINSUM, call)
    kept = {k: v for k, v in given.items() if k not in ("shape", "einsum_str", "use_bias")}
    first = (given["einsum_str"], given["shape"])
    return native_call(EINSUM, call, type(arguments)(kept), first=first)


RULES = (
    native_rule(
        DENSE,
        "nn.Dense(64, use_bias=False)",
        "nnx.Linear(in_features, 64, use_bias=False, rngs=rngs)",
    ),
    LayerRule(
        name="DenseGeneral",
        symbols=linen("DenseGeneral"),
        example=Example(
            "nn.DenseGeneral((4, 8), axis=-1)",
            "nnx.LinearGeneral(in_features, (4, 8), axis=-1, rngs=rngs)",
        ),
        convert=convert_dense_general,
        reference=lambda symbol, context: reference(symbol, context, "nnx.LinearGeneral"),
        sizes=("in_features",),
    ),
    LayerRule(
        name="Einsum",
        symbols=linen("Einsum"),
        example=Example(
            "nn.Einsum((3, 4), 'ab,bc->ac', use_bias=False)",
            "nnx.Einsum('ab,bc->ac', (3, 4), rngs=rngs)",
        ),
        convert=convert_einsum,
        reference=lambda symbol, context: reference(symbol, context, "nnm.Einsum"),
    ),
)
