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

from nnx_migrate.constructs.base import (
    Code,
    Example,
    LayerCall,
    NameRule,
    Refusal,
    Source,
    last,
    linen,
    same_call,
)
from nnx_migrate.constructs.layers import Layer, own_rule, read
from nnx_migrate.constructs.references import renamed

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


def _layer(name: str) -> Layer:
    required = tuple(one for one in ("features", "kernel_size") if one in _FIELDS[name])
    return Layer(
        name=name,
        target=f"nnm.{name}",
        fields=_FIELDS[name],
        required=required,
        optional_sizes=() if name == "ConvLSTMCell" else ("carry_features",),
    )


def _arguments(name: str) -> str:
    return "8, (3,)" if name == "ConvLSTMCell" else "8"


def convert_carry(
    call: ast.Call,
    source: Source,
    resolve: Callable[[ast.expr], str | None],
) -> Code | Refusal | None:
    """``nn.GRUCell(f, parent=None).initialize_carry(key, shape)``: no cell is built in NNX.

    Returns None when ``call`` is no ``initialize_carry`` of a cell constructed in place.
    """
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "initialize_carry"):
        return None
    built = function.value
    symbol = resolve(built.func) if isinstance(built, ast.Call) else None
    if not isinstance(built, ast.Call) or symbol is None or last(symbol) not in _FIELDS:
        return None
    name = last(symbol)
    if symbol not in linen(name):
        return None
    layer = _layer(name)
    arguments = read(layer, LayerCall(symbol, built, source))
    if isinstance(arguments, Refusal):
        return arguments
    if arguments.open:
        return Refusal(
            f"{name}(*args).initialize_carry: the fields are not shown",
            f"call nnm.{name}.make_carry(key, shape, features=...)",
            built,
        )
    fields = [source.argument(value, field) for field, value in arguments.given.items()]
    node = same_call(f"nnm.{name}.make_carry", call, source, fields)
    return Code(node, frozenset({"nnm"}))


RULES = (
    *(
        own_rule(
            _layer(name),
            f"nn.{name}({_arguments(name)})",
            f"nnm.{name}({_arguments(name)}, in_features=in_features, rngs=rngs)",
        )
        for name in _FIELDS
    ),
    NameRule(
        name="RNNCellBase",
        symbols=linen("RNNCellBase"),
        example=Example("class Cell(nn.RNNCellBase): ...", "class Cell(nnm.RNNCellBase): ..."),
        reference=renamed("nnm"),
    ),
)
