"""Recurrent cells and their base class.

Each becomes the cell of the same name in ``nnx_migrate.nn``: Linen's fields, parameter names and
initial values plus ``in_features`` and ``rngs``. The native cells name gates otherwise (``if_``),
fuse them (``OptimizedLSTMCell``, ``GRUCell``), drop a bias (``GRUCell``) or do not exist
(``MGUCell``, ``ConvLSTMCell``). ``nn.RNNCellBase`` as a base class becomes ``nnm.RNNCellBase``.

flax 0.12.8 and 0.12.12: linen/recurrent.py, nnx/nn/recurrent.py.
"""

from __future__ import annotations

from nnx_migrate.rewrite.rules.base import Example, NameRule, linen
from nnx_migrate.rewrite.rules.layers import Layer, own_rule
from nnx_migrate.rewrite.rules.references import renamed

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
    return Layer(name=name, target=f"nnm.{name}", fields=_FIELDS[name], required=required)


def _arguments(name: str) -> str:
    return "8, (3,)" if name == "ConvLSTMCell" else "8"


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
