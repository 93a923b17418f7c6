"""DenseGeneral: a matrix product over any axes.

``nn.DenseGeneral(f, axis)`` becomes ``nnx.LinearGeneral(in_features, f, axis=axis)``: the same program,
initial values and parameter names. The sizes of several axes come as a tuple in ascending axis
position (Linen sorts the axes); ``batch_dims=(0,)`` becomes ``batch_axis={0: size}``. A ``dot_general``
or ``promote_dtype`` function goes through ``nnm.factory``, which adapts it to NNX's calling convention.

flax 0.12.8 and 0.12.12: linen/linear.py, nnx/nn/linear.py.
"""

from __future__ import annotations

import ast

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Array, Unknown, ending
from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal
from nnx_migrate.constructs.common.layers import (
    UNSUPPORTED_PRODUCT,
    factory,
    has_function,
    missing_size,
    native_call,
    read,
)
from nnx_migrate.constructs.common.rules import Construct, Example, Layer
from nnx_migrate.constructs.common.shapes import Outcome, ShapeCall, together
from nnx_migrate.edit.expressions import Expression, elements_of, mapping


def shape(call: ShapeCall) -> Outcome:
    """``features`` in place of ``axis``, where these are the last axes."""
    array, axis = call.first, call.field("axis")
    field = call.field("features")
    features = shapes.shape_of(field) or (call.size("features"),)
    axes = (ex.literal(-1),) if isinstance(axis, Unknown) else shapes.shape_of(axis)
    if axes is None or any(a is None or not a.is_constant for a in axes):
        return {"in_features": None}, Unknown("DenseGeneral over unknown axes")
    indices = sorted(int(str(one.constant)) for one in axes if one)
    if indices != list(range(-len(indices), 0)) or "batch_dims" in call.layer.arguments:
        return {"in_features": None}, Unknown("DenseGeneral over inner axes")
    if array is None:
        return {"in_features": None}, ending(*features)
    sizes = [array.axis(index) for index in indices]
    leading = [array.axis(i) for i in range(-len(indices) - 2, -len(indices)) if _has(array, i)]
    if call.analysis.single(field) is not field:  # ``DenseGeneral(self.features)``, one or several
        return {"in_features": together(sizes)}, Unknown("features that may be several")
    out = array.of((*leading, *features), len(features) - len(indices))
    return {"in_features": together(sizes)}, out


def _has(array: Array, index: int) -> bool:
    return array.rank is None or -index <= array.rank


def build(layer: Layer, call: LayerCall) -> Code | Refusal:
    """``batch_dims=(0,)`` -> ``batch_axis={0: size}``; the rest by name."""
    arguments = read(layer, call)
    if isinstance(arguments, Refusal):
        return arguments
    batch = arguments.values.get("batch_dims")
    has_batch = batch is not None and not (isinstance(batch, ast.Tuple) and not batch.elts)
    if has_batch and "batch_shape" not in call.sizes:
        return Refusal(
            "size unknown: batch_shape of DenseGeneral",
            "build it by hand as `nnx.LinearGeneral` with batch_axis={axis: size}",
            batch,
        )
    if arguments.open or has_function(layer, arguments):
        return factory(layer, call)
    missing = missing_size(layer, call)
    if missing:
        return missing
    values = {name: value for name, value in arguments.values.items() if name != "batch_dims"}
    rest = type(arguments)(values)
    if not has_batch or batch is None:
        return native_call(layer, call, rest)
    sizes = _batch_axis(batch, call)
    if sizes is None:
        return factory(layer, call)
    return native_call(layer, call, rest, {"batch_axis": sizes})


def _batch_axis(batch: ast.expr, call: LayerCall) -> Expression | None:
    """``{0: b}`` for literal ``batch_dims`` and a literal tuple of sizes."""
    axes = batch.elts if isinstance(batch, ast.Tuple | ast.List) else [batch]
    sizes = elements_of(call.size("batch_shape"))
    if sizes is None or len(sizes) != len(axes):
        return None
    return mapping(zip(map(call.source.render, axes), sizes, strict=True))


DENSE_GENERAL = Layer(
    name="DenseGeneral",
    target="nnx.LinearGeneral",
    fields=(
        *("features", "axis", "batch_dims", "use_bias", "dtype", "param_dtype", "kernel_init"),
        *("bias_init", "precision", "promote_dtype", "dot_general", "dot_general_cls"),
    ),
    example=Example(
        "nn.DenseGeneral((4, 8), axis=-1)",
        "nnx.LinearGeneral(in_features, (4, 8), axis=-1, rngs=rngs)",
    ),
    build=build,
    shape=shape,
    required_fields=("features",),
    optional_sizes=("batch_shape",),
    positional=("features",),
    keywords={"features": "out_features"},
    functions=("promote_dtype", "dot_general"),
    recipes=UNSUPPORTED_PRODUCT,
    attributes={},
    variables=("kernel", "bias"),
)

CONSTRUCT = Construct(
    __doc__,
    rules=(DENSE_GENERAL,),
    example="""
class Model(nn.Module):
    heads: int = 4

    @nn.compact
    def __call__(self, x):
        x = nn.DenseGeneral((self.heads, 8))(x)
        return nn.DenseGeneral(16, axis=(-2, -1), use_bias=False)(x)
""",
    inputs="jnp.ones((2, 5, 6))",
    lazy=(
        """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.DenseGeneral(8, batch_dims=(0,))(x)
""",
    ),
)
