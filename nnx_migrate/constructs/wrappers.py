"""Modules around modules: RNN, Bidirectional, Sequential, BatchApply.

They become the wrappers of the same name in ``nnx_migrate.nn``. (BatchApply is no module, in Linen
neither: only its name changes.) RNN, Bidirectional, Sequential and
BatchApply have no variables of their own and take no ``rngs``; built inline in a compact method,
what they wrap belongs to the enclosing module, as in Linen, and the wrapper stays inline. (The
native ones name their children otherwise: ``layers/0`` for ``layers_0``.)

flax 0.12.8 and 0.12.12: linen/recurrent.py, linen/combinators.py, linen/batch_apply.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.base import (
    Example,
    NameRule,
    linen,
)
from nnx_migrate.constructs.layers import Layer, own_rule
from nnx_migrate.constructs.references import renamed


def _wrapper(name: str, *fields: str, required: int = 1) -> Layer:
    return Layer(
        name=name,
        target=f"nnm.{name}",
        fields=fields,
        required=fields[:required],
        sizes=(),
        takes_rngs=False,
    )


_RNN = _wrapper(
    *("RNN", "cell", "time_major", "return_carry", "reverse", "keep_order", "unroll"),
    *("variable_axes", "variable_broadcast", "variable_carry", "split_rngs"),
)
_BIDIRECTIONAL = _wrapper(
    *("Bidirectional", "forward_rnn", "backward_rnn", "merge_fn", "time_major", "return_carry"),
    required=2,
)
RULES = (
    own_rule(_RNN, "nn.RNN(cell, reverse=True)", "nnm.RNN(cell, reverse=True)"),
    own_rule(_BIDIRECTIONAL, "nn.Bidirectional(a, b)", "nnm.Bidirectional(a, b)"),
    own_rule(
        _wrapper("Sequential", "layers"),
        "nn.Sequential([f, g])",
        "nnm.Sequential([f, g])",
    ),
    NameRule(
        name="BatchApply",
        symbols=linen("BatchApply"),
        example=Example("nn.BatchApply(f, num_dims=3)", "nnm.BatchApply(f, num_dims=3)"),
        reference=renamed("nnm"),
    ),
)
