"""Recurrent cells and their base class.

Each becomes the cell of the same name in ``nnx_migrate.nn``: Linen's fields, parameter names and
initial values plus ``in_features`` and ``rngs``. The native cells name gates otherwise (``if_``),
fuse them (``OptimizedLSTMCell``, ``GRUCell``), drop a bias (``GRUCell``) or do not exist
(``MGUCell``, ``ConvLSTMCell``).

``nn.GRUCell(f, parent=None).initialize_carry(key, shape)`` builds a cell only to ask it for a carry:
``nnm.GRUCell.make_carry(key, shape, features=f)`` needs none. ``nn.RNNCellBase`` as a base class
becomes ``nnm.RNNCellBase``.

flax 0.12.8 and 0.12.12: linen/recurrent.py, nnx/nn/recurrent.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Argument, Sequence, Static, Submodule, Value, ending
from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal, Source, linen, same_call
from nnx_migrate.constructs.common.layers import own, read
from nnx_migrate.constructs.common.references import in_namespace
from nnx_migrate.constructs.common.rules import Construct, Example, Layer, NameRule
from nnx_migrate.constructs.common.shapes import Outcome, ShapeCall, Sizes

_INITS = ("kernel_init", "recurrent_kernel_init", "bias_init")
_TAIL = ("dtype", "param_dtype", "carry_init")
_GATED = ("features", "gate_fn", "activation_fn", *_INITS, *_TAIL)
_FIELDS = {
    "LSTMCell": _GATED,
    "OptimizedLSTMCell": _GATED,
    "GRUCell": _GATED,
    "SimpleCell": ("features", "activation_fn", *_INITS, *_TAIL, "residual"),
    "MGUCell": (
        *("features", "gate_fn", "activation_fn", "kernel_init", "recurrent_kernel_init"),
        *("forget_bias_init", "activation_bias_init", *_TAIL, "reset_gate"),
    ),
    "ConvLSTMCell": ("features", "kernel_size", "strides", "padding", "use_bias", *_TAIL),
}


def carry_of(layer: Submodule) -> Value:
    """The carry that a cell makes: arrays whose last axis is ``features``."""
    features = layer.arguments.get("features")
    return _carry(layer, features.expr if isinstance(features, Static) else None)


def _carry(layer: Submodule, width: Expr | None) -> Value:
    state = ending(width)
    return Sequence((state, state)) if "LSTM" in layer.symbol else state


def shape(call: ShapeCall) -> Outcome:
    """A step. Linen's gates are as wide as the hidden state that comes in, not as ``features`` says.

    Only ConvLSTMCell takes ``features`` (flax 0.12.8, linen/recurrent.py).
    """
    array, width = call.array(1, "inputs"), call.size("features")
    sizes: Sizes = {"in_features": array.axis(-1) if array else None}
    if not call.layer.symbol.endswith("ConvLSTMCell"):
        hidden_width = _hidden_width(call)
        if hidden_width is None:
            _assume_width(call)
        elif hidden_width != width:
            sizes["carry_features"] = width = hidden_width
    out = array.with_last(width) if array is not None else ending(width)
    return sizes, Sequence((_carry(call.layer, width), out))


def _hidden_width(call: ShapeCall) -> Expr | None:
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
    array = call.analysis.array(carry)
    return array.axis(-1) if array is not None else None


def _assume_width(call: ShapeCall) -> None:
    """Say that the hidden state is taken to be as wide as ``features``."""
    if call.layer.owner is call.analysis.root:
        call.analysis.ask(
            call.layer.call,
            "the carry is taken to be `features` wide, as initialize_carry makes it: it is not known",
        )


def _layer(name: str) -> Layer:
    arguments = "8, (3,)" if name == "ConvLSTMCell" else "8"
    return Layer(
        name=name,
        target=f"nnm.{name}",
        fields=_FIELDS[name],
        example=Example(
            f"nn.{name}({arguments})",
            f"nnm.{name}({arguments}, in_features=in_features, rngs=rngs)",
        ),
        build=own,
        shape=shape,
        methods={"initialize_carry": lambda call: ({}, carry_of(call.layer))},
        required_fields=tuple(one for one in ("features", "kernel_size") if one in _FIELDS[name]),
        optional_sizes=() if name == "ConvLSTMCell" else ("carry_features",),
        size_inputs={
            "in_features": "inputs",
            "carry_features": "carry[1]" if "LSTM" in name else "carry",
        },
    )


_LAYERS = {layer.symbol: layer for layer in map(_layer, _FIELDS)}


def convert_carry(
    call: ast.Call,
    cell_call: ast.Call,
    source: Source,
    resolve: Callable[[ast.expr], str | None],
) -> Code | Refusal | None:
    """``nn.GRUCell(f, parent=None).initialize_carry(key, shape)``: no cell is built in NNX.

    Args:
      cell_call: the call that builds what ``call`` asks.

    Returns:
      None when that is no cell.
    """
    symbol = resolve(cell_call.func)
    if symbol not in _LAYERS:
        return None
    layer = _LAYERS[symbol]
    name = layer.name
    arguments = read(layer, LayerCall(symbol, cell_call, source))
    if isinstance(arguments, Refusal):
        return arguments
    if arguments.open:
        return Refusal(
            f"{name}(*args).initialize_carry: the fields are not shown",
            f"call nnm.{name}.make_carry(key, shape, features=...)",
            cell_call,
        )
    fields = [source.argument(value, field) for field, value in arguments.values.items()]
    node = same_call(f"nnm.{name}.make_carry", call, source, fields)
    return Code(node, frozenset({"nnm"}))


CONSTRUCT = Construct(
    __doc__,
    rules=(
        *_LAYERS.values(),
        NameRule(
            name="RNNCellBase",
            symbols=linen("RNNCellBase"),
            example=Example("class Cell(nn.RNNCellBase): ...", "class Cell(nnm.RNNCellBase): ..."),
            reference=in_namespace("nnm"),
        ),
    ),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, carry, x):
        carry, x = nn.GRUCell(16)(carry, x)
        return carry, nn.Dense(4)(x)
""",
    inputs="jnp.ones((2, 16)), jnp.ones((2, 8))",
    lazy=(
        """
class Model(nn.Module):
    fields: tuple[int, ...]

    @nn.compact
    def __call__(self, x):
        carry = nn.GRUCell(*self.fields, parent=None).initialize_carry(
            jax.random.key(0), x.shape
        )
        return nn.GRUCell(*self.fields)(carry, x)
""",
    ),
)
