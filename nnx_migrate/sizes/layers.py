"""Built-in Linen layers: which sizes a call shows, and the shape that comes out.

Field orders follow flax.linen 0.12.8 (``linen/linear.py``, ``attention.py``, ``normalization.py``,
``recurrent.py``, ``stochastic.py``). Sizes are named as the rewriting rules expect them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import (
    Argument,
    Array,
    Instance,
    Sequence,
    Static,
    Submodule,
    Unknown,
    Value,
    constant,
)
from nnx_migrate.sizes.layer_fields import CELLS

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

Sizes = dict[str, Expr | None]
Outcome = tuple[Sizes, Value]
_ONE = ex.literal(1)


@dataclass(frozen=True)
class LayerCall:
    """One call of a built-in layer."""

    interpreter: Interpreter
    layer: Submodule
    args: tuple[Value, ...]
    kwargs: dict[str, Value]

    def field(self, name: str) -> Value:
        """Constructor field as given; Unknown when left out."""
        return self.layer.arguments.get(name, Unknown("left out"))

    def size(self, name: str) -> Expr | None:
        """Constructor field that is a size."""
        value = self.field(name)
        return value.expr if isinstance(value, Static) else None

    def array(self, index: int = 0, name: str = "inputs") -> Array | None:
        """Call argument as an array."""
        value = self.args[index] if index < len(self.args) else self.kwargs.get(name)
        return self.interpreter.array(value)


def call_layer(call: LayerCall) -> Outcome:
    """Sizes and output of one call."""
    kind = call.layer.symbol.removeprefix("flax.linen.")
    if kind in CELLS:
        return _cell(call)
    return _LAYERS.get(kind, _opaque)(call)


def _opaque(call: LayerCall) -> Outcome:
    return {}, Unknown(f"{call.layer.symbol} is not modelled")


def _first(call: LayerCall) -> Array | None:
    names = ("inputs", "x", "inputs_q", "query")
    found = next((name for name in names if name in call.kwargs), "inputs")
    return call.array(0, found)


def _dense(call: LayerCall) -> Outcome:
    array = _first(call)
    if array is None:
        return {"in_features": None}, Array((call.size("features"),), None)
    return {"in_features": array.axis(-1)}, array.with_last(call.size("features"))


def _dense_general(call: LayerCall) -> Outcome:
    array, axis = _first(call), call.field("axis")
    features = shapes.shape_of(call.field("features")) or (call.size("features"),)
    axes = (ex.literal(-1),) if isinstance(axis, Unknown) else shapes.shape_of(axis)
    if axes is None or any(a is None or not a.is_constant for a in axes):
        return {"in_features": None}, Unknown("DenseGeneral over unknown axes")
    indices = sorted(int(str(one.constant)) for one in axes if one)
    if indices != list(range(-len(indices), 0)) or "batch_dims" in call.layer.arguments:
        return {"in_features": None}, Unknown("DenseGeneral over inner axes")
    if array is None:
        return {"in_features": None}, Array(features, None)
    sizes = [array.axis(index) for index in indices]
    kept = [array.axis(i) for i in range(-len(indices) - 2, -len(indices)) if _has(array, i)]
    out = array.of((*kept, *features), len(features) - len(indices))
    return {"in_features": _tuple(sizes)}, out


def _has(array: Array, index: int) -> bool:
    return array.rank is None or -index <= array.rank


def _tuple(sizes: list[Expr | None]) -> Expr | None:
    if any(size is None for size in sizes):
        return None
    nodes = [size.node for size in sizes if size]
    return Expr(nodes[0]) if len(nodes) == 1 else Expr(ast.Tuple(nodes, ast.Load()))


def _einsum(call: LayerCall) -> Outcome:
    array, equation = _first(call), call.field("einsum_str")
    kernel = shapes.array_of(shapes.shape_of(call.field("shape")))
    if array is None or not (isinstance(equation, Static) and equation.expr.is_constant):
        return {}, Unknown("einsum equation unknown")
    return {}, shapes.einsum(str(equation.expr.constant), [array, kernel])


def _conv(call: LayerCall) -> Outcome:
    array = _first(call)
    if array is None:
        return {"in_features": None}, Array((call.size("features"),), None)
    kernel = shapes.shape_of(call.field("kernel_size"))
    spatial: list[Expr | None] = []
    if kernel is not None:
        strides = _spread(call, "strides", len(kernel))
        dilation = _spread(call, "kernel_dilation", len(kernel))
        padding = call.layer.arguments.get("padding", constant("SAME"))
        pads = shapes.paddings(padding, len(kernel))
        if "input_dilation" in call.layer.arguments:
            pads = (None,) * len(kernel)
        spatial = [
            shapes.window(array.axis(i - len(kernel) - 1), k, s, pad, d)
            for i, (k, s, d, pad) in enumerate(zip(kernel, strides, dilation, pads, strict=True))
        ]
    lead = [array.axis(-len(spatial) - 2)] if kernel is not None else []
    tail = (*lead, *spatial, call.size("features"))
    if kernel is None:
        return {"in_features": array.axis(-1)}, array.of(tail)
    call.interpreter.prove(array, exact=len(kernel) + 2)
    rank = array.rank if array.rank is not None else len(kernel) + 2
    return {"in_features": array.axis(-1)}, Array(tail, rank)


def _spread(call: LayerCall, field: str, count: int) -> tuple[Expr | None, ...]:
    """A stride or dilation as one size per spatial axis."""
    value = call.layer.arguments.get(field)
    if value is None:
        return (_ONE,) * count
    sizes = shapes.shape_of(value)
    if sizes is None and isinstance(value, Static):
        return _spread_field(call, value.expr, count)
    if sizes is None:
        return (None,) * count
    if len(sizes) == 1 and sizes[0] is not None and sizes[0].text == "None":
        return (_ONE,) * count
    return sizes if len(sizes) == count else sizes * count if len(sizes) == 1 else (None,) * count


def _spread_field(call: LayerCall, value: Expr, count: int) -> tuple[Expr | None, ...]:
    """An expression over fields: a number and a tuple look alike, the annotation tells them apart."""
    fields = {f"self.{one.name}": one for one in call.interpreter.root.info.fields}
    found = fields.get(value.text)
    kind = ast.unparse(found.annotation) if found and found.annotation else ""
    if kind == "int":
        return (value,) * count
    if kind.rpartition(".")[2].partition("[")[0] in ("tuple", "Tuple", "Sequence", "list", "List"):
        indices = [ast.Constant(i) for i in range(count)]
        return tuple(Expr(ast.Subscript(value.node, i, ast.Load())) for i in indices)
    return (None,) * count


def _conv_local(call: LayerCall) -> Outcome:
    sizes, out = _conv(call)
    array = _first(call)
    if array is None or array.rank is None:
        return {"in_shape": None, **sizes}, out
    return {"in_shape": _tuple(list(array.known(array.rank))), **sizes}, out


def _conv_transpose(call: LayerCall) -> Outcome:
    array = _first(call)
    kernel = shapes.shape_of(call.field("kernel_size"))
    if array is None or kernel is None:
        return {"in_features": array.axis(-1) if array else None}, Array(
            (call.size("features"),), None
        )
    same = "padding" not in call.layer.arguments or call.size("padding") == ex.literal("SAME")
    strides = _spread(call, "strides", len(kernel))
    spatial = [
        _times(array.axis(i - len(kernel) - 1), stride) if same else None
        for i, stride in enumerate(strides)
    ]
    call.interpreter.prove(array, exact=len(kernel) + 2)
    rank = array.rank or len(kernel) + 2
    out = Array((array.axis(-len(kernel) - 2), *spatial, call.size("features")), rank)
    return {"in_features": array.axis(-1)}, out


def _times(size: Expr | None, factor: Expr | None) -> Expr | None:
    return ex.binary(size, ast.Mult(), factor) if size and factor else None


def _embed(call: LayerCall) -> Outcome:
    ids = _first(call)
    if ids is None:
        return {}, Array((None, call.size("features")), None)
    lead = ids.known(3 if ids.rank is None else ids.rank)
    return {}, ids.of((*lead, call.size("features")), 1)


def _same(call: LayerCall) -> Outcome:
    return {}, _first(call) or Unknown("input unknown")


def _norm(call: LayerCall) -> Outcome:
    array = _first(call)
    sizes: Sizes = {"in_features": array.axis(-1) if array else None}
    axis = call.layer.arguments.get("axis", call.layer.arguments.get("feature_axes"))
    if isinstance(axis, Static) and not (axis.expr.is_constant and axis.expr.constant == -1):
        sizes = {"in_features": None}
    return sizes, array or Unknown("input unknown")


def _attention(call: LayerCall) -> Outcome:
    query = _first(call)
    memory = call.array(1, "inputs_k") or call.array(1, "inputs_kv") or query
    if call.layer.symbol.endswith("SelfAttention"):
        memory = query
    sizes: Sizes = {"in_features": query.axis(-1) if query else None}
    if memory is not None and memory.axis(-1) != sizes["in_features"]:
        sizes["in_kv_features"] = memory.axis(-1)
    out = call.size("out_features") or sizes["in_features"]
    return sizes, query.with_last(out) if query else Unknown("input unknown")


def carry_of(layer: Submodule) -> Value:
    """The carry that a cell makes: arrays whose last axis is ``features``."""
    features = layer.arguments.get("features")
    return _carry(layer, features.expr if isinstance(features, Static) else None)


def _carry(layer: Submodule, width: Expr | None) -> Value:
    state = Array((width,), None)
    return Sequence((state, state)) if "LSTM" in layer.symbol else state


def _cell(call: LayerCall) -> Outcome:
    """A step. Linen's gates are as wide as the hidden state that comes in, not as ``features`` says.

    Only ConvLSTMCell takes ``features`` (flax 0.12.8, linen/recurrent.py).
    """
    array, width = call.array(1, "inputs"), call.size("features")
    sizes: Sizes = {"in_features": array.axis(-1) if array else None}
    if not call.layer.symbol.endswith("ConvLSTMCell"):
        hidden = _hidden(call)
        if hidden is None:
            _assume_width(call)
        elif hidden != width:
            sizes["carry_features"] = width = hidden
    out = array.with_last(width) if array is not None else Array((width,), None)
    return sizes, Sequence((_carry(call.layer, width), out))


def _hidden(call: LayerCall) -> Expr | None:
    """The width of the hidden state that a cell is called with."""
    carry = call.args[0] if call.args else call.kwargs.get("carry")
    if "LSTM" in call.layer.symbol:
        match carry:
            case Sequence(items=(_, hidden)):
                carry = hidden
            case Argument(path=path):
                carry = Argument(f"{path}[1]")
            case _:
                return None
    array = call.interpreter.array(carry)
    return array.axis(-1) if array is not None else None


def _assume_width(call: LayerCall) -> None:
    """Say that the hidden state is taken to be as wide as ``features``."""
    if call.layer.owner is call.interpreter.root:
        call.interpreter.ask(
            call.layer.call,
            "the carry is taken to be `features` wide, as initialize_carry makes it: it is not known",
        )


def _rnn(call: LayerCall) -> Outcome:
    cell, array = call.field("cell"), call.array(0, "inputs")
    step = Array(array.known(1) if array else (None,), None)
    carry: Value = call.kwargs.get("initial_carry", Unknown())
    if isinstance(carry, Unknown) and isinstance(cell, Submodule):
        carry = carry_of(cell)
    result = call.interpreter.call_value(cell, (carry, step), {}, call.layer.call)
    if not isinstance(result, Sequence) or len(result.items) != 2:
        return {}, Unknown("the cell's output is unknown")
    last, outputs = result.items
    wants_carry = call.field("return_carry")
    flag = call.kwargs.get("return_carry", wants_carry)
    if isinstance(flag, Static) and flag.expr.is_constant and flag.expr.constant:
        return {}, Sequence((last, outputs))
    return {}, outputs


def _bidirectional(call: LayerCall) -> Outcome:
    outs = [
        call.interpreter.array(
            call.interpreter.call_value(call.field(side), call.args[:1], {}, call.layer.call)
        )
        for side in ("forward_rnn", "backward_rnn")
    ]
    lasts = [out.axis(-1) if out else None for out in outs]
    known = [last for last in lasts if last]
    if len(known) != 2 or "merge_fn" in call.layer.arguments or outs[0] is None:
        return {}, Unknown("Bidirectional output unknown")
    return {}, outs[0].with_last(ex.total(known))


def _sequential(call: LayerCall) -> Outcome:
    layers, value = call.field("layers"), call.args[0] if call.args else Unknown()
    if not isinstance(layers, Sequence):
        return {}, Unknown("Sequential over an unknown list")
    for layer in layers.items:
        value = call.interpreter.call_value(layer, (value,), {}, call.layer.call)
    return {}, value


def _wrapper(call: LayerCall) -> Outcome:
    inner = call.field("layer_instance")
    if not isinstance(inner, Submodule | Instance):
        return {}, Unknown("wrapped layer unknown")
    return {}, call.interpreter.call_value(inner, call.args, {}, call.layer.call)


_LAYERS: dict[str, Callable[[LayerCall], Outcome]] = {
    "Dense": _dense,
    "DenseGeneral": _dense_general,
    "Einsum": _einsum,
    "Conv": _conv,
    "ConvLocal": _conv_local,
    "ConvTranspose": _conv_transpose,
    "Embed": _embed,
    "LayerNorm": _norm,
    "RMSNorm": _norm,
    "BatchNorm": _norm,
    "GroupNorm": _norm,
    "InstanceNorm": _norm,
    "Dropout": _same,
    "PReLU": _same,
    "MultiHeadDotProductAttention": _attention,
    "MultiHeadAttention": _attention,
    "SelfAttention": _attention,
    "RNN": _rnn,
    "Bidirectional": _bidirectional,
    "Sequential": _sequential,
}
