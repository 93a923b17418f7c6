"""Modules around modules: RNN, Bidirectional, Sequential, BatchApply.

They become the wrappers of the same name in ``nnx_migrate.nn``. (BatchApply is no module, in Linen
neither: only its name changes.) RNN, Bidirectional, Sequential and
BatchApply have no variables of their own and take no ``rngs``; built inline in a compact method,
what they wrap belongs to the enclosing module, as in Linen, and the wrapper stays inline. (The
native ones name their children otherwise: ``layers/0`` for ``layers_0``.)

flax 0.12.8 and 0.12.12: linen/recurrent.py, linen/combinators.py, linen/batch_apply.py.
"""

from __future__ import annotations

from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.joining import join_all
from nnx_migrate.abstract.lists import parts_of
from nnx_migrate.abstract.questions import constant_of
from nnx_migrate.abstract.values import (
    STARRED,
    Array,
    Choice,
    Record,
    RepeatedItem,
    Sequence,
    Submodule,
    Unknown,
    Value,
)
from nnx_migrate.constructs.cells import carry_of
from nnx_migrate.constructs.common.base import linen
from nnx_migrate.constructs.common.layers import own
from nnx_migrate.constructs.common.references import in_namespace
from nnx_migrate.constructs.common.rules import Construct, Example, Layer, NameRule
from nnx_migrate.constructs.common.shapes import Outcome, Shape, ShapeCall, opaque


def rnn(call: ShapeCall) -> Outcome:
    """What the cell returns, step by step."""
    cell, array = call.field("cell"), call.array(0, "inputs")
    call.analysis.prove(array, least=2)  # steps, each with features
    step = Array(array.last_sizes(1) if array else (None,), None)
    carry: Value = call.kwargs.get("initial_carry", Unknown())
    if isinstance(carry, Unknown) and isinstance(cell, Submodule):
        carry = carry_of(cell)
    result = call.analysis.call_value(cell, (carry, step), {}, call.layer.call)
    if not isinstance(result, Sequence) or len(result.items) != 2:
        return {}, Unknown("the cell's output is unknown")
    last, outputs = result.items
    wants_carry = call.field("return_carry")
    flag = call.kwargs.get("return_carry", wants_carry)
    if constant_of(flag):
        return {}, Sequence((last, outputs))
    return {}, outputs


def bidirectional(call: ShapeCall) -> Outcome:
    """Both outputs, one after the other."""
    outs = [
        call.analysis.array(
            call.analysis.call_value(call.field(side), call.args[:1], {}, call.layer.call)
        )
        for side in ("forward_rnn", "backward_rnn")
    ]
    lasts = [out.axis(-1) if out else None for out in outs]
    sizes = [last for last in lasts if last]
    if len(sizes) != 2 or "merge_fn" in call.layer.arguments or outs[0] is None:
        return {}, Unknown("Bidirectional output unknown")
    return {}, outs[0].with_last(ex.total(sizes))


def sequential(call: ShapeCall) -> Outcome:
    """What the last layer makes."""
    layers = call.field("layers")
    if not isinstance(layers, Choice):
        return {}, _in_turn(call, layers)
    test = layers.test  # ``if self.norm: layers.append(nn.LayerNorm())``
    if test is None:
        return {}, Unknown("Sequential over one of several lists")
    made = []
    for one, condition in zip(layers.options, (test, ex.negation(test)), strict=True):
        with call.analysis.under(condition):
            made.append(_in_turn(call, one))
    return {}, join_all(test, made)


def _in_turn(call: ShapeCall, layers: Value) -> Value:
    value, args, kwargs = call.args[0] if call.args else Unknown(), call.args, call.kwargs
    parts = parts_of(layers)
    if parts is None:
        return Unknown("Sequential over an unknown list")
    for part in parts:
        if isinstance(part, Sequence):
            for layer in part.items:
                value = call.analysis.call_value(layer, args, kwargs, call.layer.call)
                args, kwargs = _handed_on(value)
            continue
        if len(args) != 1 or kwargs:
            return Unknown("Sequential of several arguments over an unknown list")
        one = (
            replace(part, item=Sequence((part.item,)))
            if isinstance(part, RepeatedItem)
            else part.each
        )
        value = call.analysis.call_in_turn(one, args[0], call.layer)
        args, kwargs = _handed_on(value)
    return value


def _handed_on(value: Value) -> tuple[tuple[Value, ...], dict[str, Value]]:
    """What the next layer is called with: tuples and dicts are its arguments."""
    match value:
        case Sequence(items=items):
            return items, {}
        case Record(entries=entries):
            return (), dict(entries)
        case Unknown():
            return (value, STARRED), {}
    return (value,), {}


def _wrapper(
    name: str, arguments: str, shape: Shape, *fields: str, required_count: int = 1
) -> Layer:
    return Layer(
        name=name,
        target=f"nnm.{name}",
        fields=fields,
        example=Example(f"nn.{name}({arguments})", f"nnm.{name}({arguments})"),
        build=own,
        shape=shape,
        required_fields=fields[:required_count],
        sizes=(),
        takes_rngs=False,
        holds_modules=True,
    )


RNN = _wrapper(
    *("RNN", "cell, reverse=True", rnn),
    *("cell", "time_major", "return_carry", "reverse", "keep_order", "unroll"),
    *("variable_axes", "variable_broadcast", "variable_carry", "split_rngs"),
)
BIDIRECTIONAL = _wrapper(
    *("Bidirectional", "a, b", bidirectional),
    *("forward_rnn", "backward_rnn", "merge_fn", "time_major", "return_carry"),
    required_count=2,
)
SEQUENTIAL = replace(_wrapper("Sequential", "[f, g]", sequential, "layers"), only_calls=True)
BATCH_APPLY = _wrapper("BatchApply", "f, num_dims=3", opaque, "f", "num_dims")

CONSTRUCT = Construct(
    __doc__,
    rules=(
        RNN,
        BIDIRECTIONAL,
        SEQUENTIAL,
        NameRule(
            name="BatchApply",
            symbols=linen("BatchApply"),
            example=BATCH_APPLY.example,
            reference=in_namespace("nnm"),
            layer=BATCH_APPLY,
        ),
    ),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Bidirectional(nn.RNN(nn.GRUCell(8)), nn.RNN(nn.GRUCell(8)))(x)
        return nn.Sequential([nn.Dense(16), nn.relu, nn.Dense(4)])(x)
""",
    inputs="jnp.ones((2, 5, 8))",
)
