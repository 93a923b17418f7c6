"""Conv, ConvTranspose and ConvLocal.

``nn.Conv(f, k)`` becomes ``nnx.Conv(in_features, f, k)`` and likewise ``nn.ConvTranspose``: the
same program, initial values and parameter names. ``conv_general_dilated`` goes through
``nnm.factory``, which adapts the function. ``ConvLocal`` has no NNX counterpart: ``nnm.ConvLocal``
takes Linen's arguments and the whole input shape (its kernel depends on it). In a field of a class
that gives layers what ``nn.Conv`` needs, ``nnm.factory.ConvLocal`` makes its parameters in the first call.

flax 0.12.8 and 0.12.12: linen/linear.py, nnx/nn/linear.py.
"""

from __future__ import annotations

import ast

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import constant
from nnx_migrate.abstract.values import Static, ending
from nnx_migrate.constructs.common.layers import native, own
from nnx_migrate.constructs.common.rules import Construct, Example, Layer, same_names
from nnx_migrate.constructs.common.shapes import Outcome, ShapeCall, together

_CLS = "pass an equivalent `conv_general_dilated` function"
_FIELDS = (
    *("features", "kernel_size", "strides", "padding", "input_dilation", "kernel_dilation"),
    *("feature_group_count", "use_bias", "mask", "dtype", "param_dtype", "precision"),
    *("kernel_init", "bias_init", "promote_dtype", "conv_general_dilated"),
    "conv_general_dilated_cls",
)
_ATTRIBUTES = {"features": "out_features", **same_names("use_bias", "dtype", "param_dtype")}


def window(call: ShapeCall) -> Outcome:
    """``features`` in place of the last axis, spatial axes by stride, dilation and padding."""
    array = call.first
    if array is None:
        return {"in_features": None}, ending(call.size("features"))
    kernel = shapes.shape_of(call.field("kernel_size"))
    spatial: list[Expr | None] = []
    if kernel is not None:
        strides = _per_axis(call, "strides", len(kernel))
        dilation = _per_axis(call, "kernel_dilation", len(kernel))
        padding = call.layer.arguments.get("padding", constant("SAME"))
        pads = shapes.paddings(padding, len(kernel))
        if "input_dilation" in call.layer.arguments:
            pads = (None,) * len(kernel)
        spatial = [
            shapes.window(array.axis(i - len(kernel) - 1), k, s, pad, d)
            for i, (k, s, d, pad) in enumerate(zip(kernel, strides, dilation, pads, strict=True))
        ]
    if kernel is None:
        return {"in_features": array.axis(-1)}, array.of((call.size("features"),))
    call.analysis.prove(array, usual=len(kernel) + 2)
    out = array.over_windows(tuple(spatial), call.size("features"))
    return {"in_features": array.axis(-1)}, out


def _per_axis(call: ShapeCall, field: str, count: int) -> tuple[Expr | None, ...]:
    """A stride or dilation as one size per spatial axis."""
    value = call.layer.arguments.get(field)
    if value is None:
        return (ex.literal(1),) * count
    sizes = shapes.shape_of(value)
    if sizes is None and isinstance(value, Static):
        return _spread_field(call, value.expr, count)
    if sizes is None:
        return (None,) * count
    if len(sizes) == 1 and sizes[0] is not None and sizes[0].text == "None":
        return (ex.literal(1),) * count
    return sizes if len(sizes) == count else sizes * count if len(sizes) == 1 else (None,) * count


def _spread_field(call: ShapeCall, value: Expr, count: int) -> tuple[Expr | None, ...]:
    """An expression over fields: a number and a tuple look alike, the annotation tells them apart."""
    fields = {f"self.{one.name}": one for one in call.analysis.root.info.fields}
    found = fields.get(value.text)
    kind = ast.unparse(found.annotation) if found and found.annotation else ""
    if kind == "int":
        return (value,) * count
    if kind.rpartition(".")[2].partition("[")[0] in ("tuple", "Tuple", "Sequence", "list", "List"):
        indices = [ast.Constant(i) for i in range(count)]
        return tuple(Expr(ast.Subscript(value.node, i, ast.Load())) for i in indices)
    return (None,) * count


def local(call: ShapeCall) -> Outcome:
    """As a convolution; the kernel depends on the whole shape."""
    sizes, out = window(call)
    array = call.first
    if array is None or array.rank is None:
        return {"in_shape": None, **sizes}, out
    return {"in_shape": together(list(array.last_sizes(array.rank))), **sizes}, out


def transpose(call: ShapeCall) -> Outcome:
    """``features`` in place of the last axis, spatial axes times their stride."""
    array = call.first
    kernel = shapes.shape_of(call.field("kernel_size"))
    if array is None or kernel is None:
        return {"in_features": array.axis(-1) if array else None}, ending(call.size("features"))
    same = "padding" not in call.layer.arguments or call.size("padding") == ex.literal("SAME")
    strides = _per_axis(call, "strides", len(kernel))
    spatial = [
        _times(array.axis(i - len(kernel) - 1), stride) if same else None
        for i, stride in enumerate(strides)
    ]
    call.analysis.prove(array, usual=len(kernel) + 2)
    out = array.over_windows(tuple(spatial), call.size("features"))
    return {"in_features": array.axis(-1)}, out


def _times(size: Expr | None, factor: Expr | None) -> Expr | None:
    return ex.binary(size, ast.Mult(), factor) if size and factor else None


CONV = Layer(
    name="Conv",
    target="nnx.Conv",
    fields=_FIELDS,
    example=Example(
        "nn.Conv(features=32, kernel_size=(3, 3), padding='VALID')",
        "nnx.Conv(in_features, 32, kernel_size=(3, 3), padding='VALID', rngs=rngs)",
    ),
    build=native,
    shape=window,
    required_fields=("features", "kernel_size"),
    positional=("features", "kernel_size", "strides"),
    keywords={"features": "out_features"},
    functions=("promote_dtype", "conv_general_dilated"),
    recipes={"conv_general_dilated_cls": _CLS},
    attributes=_ATTRIBUTES,
    variables=("kernel", "bias"),
)

CONV_TRANSPOSE = Layer(
    name="ConvTranspose",
    target="nnx.ConvTranspose",
    fields=(
        *("features", "kernel_size", "strides", "padding", "kernel_dilation", "use_bias", "mask"),
        *("dtype", "param_dtype", "precision", "kernel_init", "bias_init", "transpose_kernel"),
        *("promote_dtype", "preferred_element_type"),
    ),
    example=Example(
        "nn.ConvTranspose(8, (3,), (2,))",
        "nnx.ConvTranspose(in_features, 8, (3,), (2,), rngs=rngs)",
    ),
    build=native,
    shape=transpose,
    required_fields=("features", "kernel_size"),
    positional=("features", "kernel_size", "strides"),
    keywords={"features": "out_features"},
    functions=("promote_dtype",),
    attributes=_ATTRIBUTES,
    variables=("kernel", "bias"),
)

CONV_LOCAL = Layer(
    name="ConvLocal",
    target="nnm.ConvLocal",
    fields=_FIELDS,
    example=Example(
        "nn.ConvLocal(8, (3,))", "nnm.ConvLocal(8, (3,), input_shape=in_shape, rngs=rngs)"
    ),
    build=own,
    shape=local,
    required_fields=("features", "kernel_size"),
    sizes=("in_shape",),
    defers_init=True,
    recipes={"conv_general_dilated_cls": _CLS},
    variables=("kernel", "bias"),
)

CONSTRUCT = Construct(
    __doc__,
    rules=(CONV, CONV_TRANSPOSE, CONV_LOCAL),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(8, kernel_size=(3, 3), strides=(2, 2))(x))
        x = nn.ConvTranspose(4, kernel_size=(2, 2), strides=(2, 2))(x)
        return nn.Conv(3, (1, 1), use_bias=False)(x)
""",
    inputs="jnp.ones((2, 8, 8, 3))",
    lazy=(
        """
class Model(nn.Module):
    convolution: type

    @nn.compact
    def __call__(self, x):
        return nn.Conv(8, (3,), conv_general_dilated_cls=self.convolution)(x)
""",
    ),
)
