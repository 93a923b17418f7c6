"""LayerNorm, RMSNorm, InstanceNorm, GroupNorm and BatchNorm.

Over the last axis they become the native layers, sized by ``in_features``. NNX casts scale, bias
and running statistics to the computation dtype before using them, Linen after: with a ``dtype`` or
``param_dtype`` the native layer is told not to (``promote_dtype=nnm.keep_dtype``), which gives
Linen's bits. ``BatchNorm`` always gets that and an explicit ``use_running_average`` (Linen's
default None asks the call for it, NNX's False does not).

Other axes, ``force_float32_reductions`` and GroupNorm's ``reduction_axes`` have no native
counterpart: the layers of ``nnx_migrate.nn`` take Linen's arguments plus ``in_features``.

flax 0.12.8 and 0.12.12: linen/normalization.py, nnx/nn/normalization.py.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from nnx_migrate.constructs.base import (
    Arguments,
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
    missing_size,
    native_call,
    own,
    read,
    reference,
)
from nnx_migrate.edit.expressions import display, integer, item, parenthesized

_TAIL = ("axis_name", "axis_index_groups", "use_fast_variance", "force_float32_reductions")
_AFFINE = ("use_bias", "use_scale", "bias_init", "scale_init")
_KEEP = {"promote_dtype": "nnm.keep_dtype"}


def _norm(name: str, *fields: str, positional: tuple[str, ...] = ()) -> Layer:
    return Layer(
        name=name,
        target=f"nnx.{name}",
        fields=(*fields, *_TAIL),
        positional=positional,
        functions=("force_float32_reductions",),
    )


_LAYERS = (
    _norm(
        "LayerNorm", "epsilon", "dtype", "param_dtype", *_AFFINE, "reduction_axes", "feature_axes"
    ),
    _norm(
        *("RMSNorm", "epsilon", "dtype", "param_dtype", "use_scale", "scale_init"),
        *("reduction_axes", "feature_axes"),
    ),
    _norm("InstanceNorm", "epsilon", "dtype", "param_dtype", *_AFFINE, "feature_axes"),
    _norm(
        *("GroupNorm", "num_groups", "group_size", "epsilon", "dtype", "param_dtype"),
        *(*_AFFINE, "reduction_axes"),
        positional=("num_groups", "group_size"),
    ),
    _norm(
        *("BatchNorm", "use_running_average", "axis", "momentum", "epsilon", "dtype"),
        *("param_dtype", *_AFFINE),
    ),
)

_FEATURES = ("feature_axes", "axis")


def convert(layer: Layer, call: LayerCall) -> Code | Refusal:
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
    extra = _extra(layer, arguments)
    code = native_call(layer, call, arguments, extra)
    more = {"nnm"} if "promote_dtype" in extra else set()
    return replace(code, imports=code.imports | more)


def _is_native(layer: Layer, arguments: Arguments) -> bool:
    averaged = arguments.given.get("axis_name")
    if layer.name == "BatchNorm" and averaged is not None and not is_literal(averaged, None):
        return False  # the native one averages in Linen's init, too
    for name in ("feature_axes", "reduction_axes", "axis"):
        value = arguments.given.get(name)
        if value is not None and _axis(value) != -1:
            return False
    forced = arguments.given.get("force_float32_reductions")
    return forced is None or is_literal(forced, True)


def _extra(layer: Layer, arguments: Arguments) -> dict[str, str]:
    if layer.name == "BatchNorm":
        given = "use_running_average" in arguments.given
        return _KEEP if given else {"use_running_average": "None", **_KEEP}
    return _KEEP if {"dtype", "param_dtype"} & arguments.given.keys() else {}


def _own(layer: Layer, call: LayerCall, arguments: Arguments) -> Code | Refusal:
    """Sized by ``in_features`` when that is known, else by the feature axes of the whole shape."""
    if "in_features" in call.sizes:
        return own(layer, call)
    axes = next((arguments.given[name] for name in _FEATURES if name in arguments.given), None)
    positions = None if axes is None else _axes(axes)
    if positions is None or "in_shape" not in call.sizes:
        return Refusal(
            f"size unknown: in_features of {layer.name}",
            f"build it by hand as `nnm.{layer.name}` with in_features (a size per feature axis)",
            call.call,
        )
    shape = parenthesized(call.size("in_shape"))
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


_EXAMPLES = {
    "LayerNorm": (
        "nn.LayerNorm(epsilon=1e-5)",
        "nnx.LayerNorm(in_features, epsilon=1e-5, rngs=rngs)",
    ),
    "RMSNorm": (
        "nn.RMSNorm(dtype=jnp.bfloat16)",
        "nnx.RMSNorm(in_features, dtype=jnp.bfloat16, promote_dtype=nnm.keep_dtype, rngs=rngs)",
    ),
    "InstanceNorm": ("nn.InstanceNorm()", "nnx.InstanceNorm(in_features, rngs=rngs)"),
    "GroupNorm": ("nn.GroupNorm(8)", "nnx.GroupNorm(in_features, 8, rngs=rngs)"),
    "BatchNorm": (
        "nn.BatchNorm(momentum=0.9)",
        (
            "nnx.BatchNorm(in_features, momentum=0.9, use_running_average=None, "
            "promote_dtype=nnm.keep_dtype, rngs=rngs)"
        ),
    ),
}


def _rule(layer: Layer) -> LayerRule:
    return LayerRule(
        name=layer.name,
        symbols=linen(layer.name),
        example=Example(*_EXAMPLES[layer.name]),
        convert=lambda call: convert(layer, call),
        reference=lambda symbol, context: reference(symbol, context, layer.target),
        sizes=layer.sizes,
    )


RULES = tuple(_rule(layer) for layer in _LAYERS)
