"""LayerNorm, RMSNorm, InstanceNorm, GroupNorm and BatchNorm.

Over the last axis they become the native layers, sized by ``in_features``. NNX casts scale, bias
and running statistics to the computation dtype before using them, Linen after: with a ``dtype`` or
``param_dtype`` the native layer is told not to (``promote_dtype=nnm.keep_dtype``), which gives
Linen's bits. So it is where a project names other floating types than float32
at all, or takes a ``dtype`` that its text does not say (``self.dtype``, ``cfg.dtype``).

``BatchNorm``, other axes, ``force_float32_reductions`` and GroupNorm's ``reduction_axes`` have no
native counterpart: the layers of ``nnx_migrate.nn`` take Linen's arguments plus ``in_features``.
(``nnx.GroupNorm`` spreads the statistics of groups over its axis 1, whatever that is.
``nnx.BatchNorm`` lets no gradient through the statistics that it updates. Linen does, which shows
where one pass calls a layer that trains and then again with the running statistics.)

flax 0.12.8 and 0.12.12: linen/normalization.py, nnx/nn/normalization.py.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from nnx_migrate.abstract.values import Sequence, Static, Unknown, Value
from nnx_migrate.constructs.common.base import Arguments, Code, LayerCall, Refusal, is_literal
from nnx_migrate.constructs.common.layers import factory, missing_size, native_call, own, read
from nnx_migrate.constructs.common.rules import Construct, Example, Layer, same_names
from nnx_migrate.constructs.common.shapes import Outcome, ShapeCall, Sizes
from nnx_migrate.edit.expressions import display, integer, item, parenthesize

_TAIL = ("axis_name", "axis_index_groups", "use_fast_variance", "force_float32_reductions")
_AFFINE = ("use_bias", "use_scale", "bias_init", "scale_init")
_KEEP = {"promote_dtype": "nnm.keep_dtype"}
_KEPT = same_names("epsilon", "use_bias", "use_scale", "dtype", "param_dtype")
_FEATURES = ("feature_axes", "axis")


def shape(call: ShapeCall) -> Outcome:
    """The shape stays; the size is that of the last axis, unless other axes are named."""
    array = call.first
    sizes: Sizes = {"in_features": array.axis(-1) if array else None}
    axis = call.layer.arguments.get("axis", call.layer.arguments.get("feature_axes"))
    if axis is not None and not _is_last(axis):
        sizes = {"in_features": None}
    return sizes, array or Unknown("input unknown")


def _is_last(axis: Value) -> bool:
    match axis:
        case Static(expr=expr):
            return expr.is_constant and expr.constant in (-1, (-1,))
        case Sequence(items=(Static() as one,)):
            return _is_last(one)
    return False


def build(layer: Layer, call: LayerCall) -> Code | Refusal:
    """Native over the last axis, else the own layer."""
    arguments = read(layer, call)
    if isinstance(arguments, Refusal):
        return arguments
    if arguments.open:
        return factory(layer, call)
    if not _is_native(layer, arguments):
        return _own(layer, call, arguments)
    missing = missing_size(layer, call)
    if missing:
        return missing
    is_cast = {"dtype", "param_dtype"} & arguments.values.keys() or call.mixes_dtypes()
    extra = _KEEP if is_cast else {}
    code = native_call(layer, call, arguments, extra)
    more = {"nnm"} if "promote_dtype" in extra else set()
    return replace(code, imports=code.imports | more)


def _is_native(layer: Layer, arguments: Arguments) -> bool:
    if layer.name == "BatchNorm" or (
        layer.name == "GroupNorm" and "reduction_axes" in arguments.values
    ):
        return False
    for name in ("feature_axes", "reduction_axes", "axis"):
        value = arguments.values.get(name)
        if value is not None and _axis(value) != -1:
            return False
    option = arguments.values.get("force_float32_reductions")
    return option is None or is_literal(option, True)


def _own(layer: Layer, call: LayerCall, arguments: Arguments) -> Code | Refusal:
    """Sized by ``in_features`` when that is known, else by the feature axes of the whole shape."""
    if "in_features" in call.sizes:
        return own(layer, call)
    axes = next((arguments.values[name] for name in _FEATURES if name in arguments.values), None)
    positions = None if axes is None else _axes(axes)
    if positions is None or "in_shape" not in call.sizes:
        return Refusal(
            f"size unknown: in_features of {layer.name}",
            f"build it by hand as `nnm.{layer.name}` with in_features (a size per feature axis)",
            call.call,
        )
    shape = parenthesize(call.size("in_shape"))
    sizes = [item(shape, integer(position)) for position in positions]
    single = isinstance(axes, ast.Constant | ast.UnaryOp)
    return own(layer, call, {"in_features": sizes[0] if single else display(sizes)})


def _axis(node: ast.expr) -> int | None:
    """A literal axis, ``-1`` or ``(-1,)``."""
    axes = _axes(node)
    return axes[0] if axes is not None and len(axes) == 1 else None


def _axes(node: ast.expr) -> tuple[int, ...] | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    return values if all(type(one) is int for one in values) else None


LAYER_NORM = Layer(
    name="LayerNorm",
    target="nnx.LayerNorm",
    fields=(
        *("epsilon", "dtype", "param_dtype", *_AFFINE, "reduction_axes", "feature_axes"),
        *_TAIL,
    ),
    example=Example(
        "nn.LayerNorm(epsilon=1e-5)", "nnx.LayerNorm(in_features, epsilon=1e-5, rngs=rngs)"
    ),
    build=build,
    shape=shape,
    functions=("force_float32_reductions",),
    attributes=_KEPT,
    variables=("scale", "bias"),
)

RMS_NORM = replace(
    LAYER_NORM,
    name="RMSNorm",
    target="nnx.RMSNorm",
    fields=(
        *("epsilon", "dtype", "param_dtype", "use_scale", "scale_init"),
        *("reduction_axes", "feature_axes", *_TAIL),
    ),
    example=Example(
        "nn.RMSNorm(dtype=jnp.bfloat16)",
        "nnx.RMSNorm(in_features, dtype=jnp.bfloat16, promote_dtype=nnm.keep_dtype, rngs=rngs)",
    ),
    attributes=same_names("epsilon", "use_scale", "dtype", "param_dtype"),
    variables=("scale",),
)

INSTANCE_NORM = replace(
    LAYER_NORM,
    name="InstanceNorm",
    target="nnx.InstanceNorm",
    fields=("epsilon", "dtype", "param_dtype", *_AFFINE, "feature_axes", *_TAIL),
    example=Example("nn.InstanceNorm()", "nnx.InstanceNorm(in_features, rngs=rngs)"),
    variables=(),
)

GROUP_NORM = replace(
    LAYER_NORM,
    name="GroupNorm",
    target="nnx.GroupNorm",
    fields=(
        *("num_groups", "group_size", "epsilon", "dtype", "param_dtype"),
        *(*_AFFINE, "reduction_axes", *_TAIL),
    ),
    example=Example("nn.GroupNorm(8)", "nnx.GroupNorm(in_features, 8, rngs=rngs)"),
    positional=("num_groups", "group_size"),
)

BATCH_NORM = replace(
    LAYER_NORM,
    name="BatchNorm",
    target="nnm.BatchNorm",
    fields=(
        *("use_running_average", "axis", "momentum", "epsilon", "dtype", "param_dtype"),
        *(*_AFFINE, *_TAIL),
    ),
    example=Example(
        "nn.BatchNorm(momentum=0.9)",
        "nnm.BatchNorm(momentum=0.9, in_features=in_features, rngs=rngs)",
    ),
    attributes={**_KEPT, **same_names("momentum")},
    variables=("scale", "bias", "mean", "var"),
    has_statistics=True,
    at_call=("use_running_average",),
)

CONSTRUCT = Construct(
    __doc__,
    rules=(LAYER_NORM, RMS_NORM, INSTANCE_NORM, GROUP_NORM, BATCH_NORM),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.LayerNorm(epsilon=1e-5)(nn.Dense(8)(x))
        x = nn.GroupNorm(num_groups=4)(x) + nn.RMSNorm(dtype=jnp.float32)(x)
        return nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
""",
    inputs="jnp.linspace(-1, 1, 32).reshape(4, 8)",
    lazy=(
        """
class Model(nn.Module):
    axes: tuple[int, ...]

    @nn.compact
    def __call__(self, x):
        return nn.LayerNorm(feature_axes=self.axes, reduction_axes=self.axes)(x)
""",
    ),
)
