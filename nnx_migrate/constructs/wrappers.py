"""Modules around modules: RNN, Bidirectional, Sequential, BatchApply, SpectralNorm, WeightNorm.

They become the wrappers of the same name in ``nnx_migrate.nn``. (BatchApply is no module, in Linen
neither: only its name changes.) RNN, Bidirectional, Sequential and
BatchApply have no variables of their own and take no ``rngs``; built inline in a compact method,
what they wrap belongs to the enclosing module, as in Linen, and the wrapper stays inline. (The
native ones name their children otherwise: ``layers/0`` for ``layers_0``.)

``SpectralNorm`` and ``WeightNorm`` keep variables beside the layer's, under names that begin with the
layer's. Around a layer built in place they hold it, as in Linen's ``setup``. In a compact method a layer
built in the wrapper's call is an attribute of the enclosing module: the wrapper gets its name. NNX
names a module that is held twice by the first attribute in alphabetical order, which has to be the
layer's; otherwise, and around a layer that was built elsewhere, refused.

flax 0.12.8 and 0.12.12: linen/recurrent.py, linen/combinators.py, linen/batch_apply.py,
linen/normalization.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from nnx_migrate.constructs.base import (
    Code,
    Example,
    LayerCall,
    LayerRule,
    NameRule,
    Refusal,
    linen,
)
from nnx_migrate.constructs.layers import Layer, own, own_rule, read, reference
from nnx_migrate.constructs.references import renamed
from nnx_migrate.edit.expressions import code_of, string
from nnx_migrate.model import Confidence

_MOVED = (
    "its statistics start as after Linen's init(..., update_stats=False); if init is called with True,"
    " pass init_update_stats=True"
)


def _wrapper(name: str, *fields: str, required: int = 1, takes_rngs: bool = False) -> Layer:
    return Layer(
        name=name,
        target=f"nnm.{name}",
        fields=fields,
        required=fields[:required],
        sizes=(),
        takes_rngs=takes_rngs,
    )


_RNN = _wrapper(
    *("RNN", "cell", "time_major", "return_carry", "reverse", "keep_order", "unroll"),
    *("variable_axes", "variable_broadcast", "variable_carry", "split_rngs"),
)
_BIDIRECTIONAL = _wrapper(
    *("Bidirectional", "forward_rnn", "backward_rnn", "merge_fn", "time_major", "return_carry"),
    required=2,
)
_SPECTRAL = _wrapper(
    *("SpectralNorm", "layer_instance", "n_steps", "epsilon", "dtype", "param_dtype"),
    *("error_on_non_matrix", "collection_name"),
    takes_rngs=True,
)
_WEIGHT = _wrapper(
    *("WeightNorm", "layer_instance", "epsilon", "dtype", "param_dtype", "use_scale"),
    *("scale_init", "feature_axes", "variable_filter"),
    takes_rngs=True,
)


def _reparametrized(layer: Layer) -> Callable[[LayerCall], Code | Refusal]:
    def convert(call: LayerCall) -> Code | Refusal:
        arguments = read(layer, call)
        if isinstance(arguments, Refusal):
            return arguments
        wrapped = arguments.given.get("layer_instance")
        if isinstance(wrapped, ast.Call):
            text = code_of(call.source.render(wrapped))
            if not text.startswith(("self.", "getattr(")):
                return _reviewed(layer, own(layer, call))
            name = text.removeprefix("self.")
            if name.isidentifier() and name < _own_name(layer, call):
                return _reviewed(layer, own(layer, call, {"layer_name": string(name, '"')}))
        return Refusal(
            f"{layer.name} around a layer of the enclosing module",
            f"write `self.{layer.name}_0 = nnm.{layer.name}(self.Dense_0, "
            'layer_name="Dense_0", rngs=rngs)`, the layer under a name that comes first',
            call.call,
        )

    return convert


def _reviewed(layer: Layer, code: Code | Refusal) -> Code | Refusal:
    """Statistics that Linen's init moves when its call has ``update_stats=True`` stay here."""
    if isinstance(code, Refusal) or layer is not _SPECTRAL:
        return code
    return replace(code, findings=(*code.findings, _MOVED), confidence=Confidence.REVIEW)


def _own_name(layer: Layer, call: LayerCall) -> str:
    """The least name that the wrapper can have in a compact method; empty when it is computed."""
    given = next((one.value for one in call.call.keywords if one.arg == "name"), None)
    if given is None:
        return f"{layer.name}_0"
    return str(given.value) if isinstance(given, ast.Constant) else ""


def _reparametrized_rule(layer: Layer, name: str) -> LayerRule:
    return LayerRule(
        name=name,
        symbols=linen(name),
        example=Example(
            f"nn.{name}(nn.Dense(4))",
            f"nnm.{name}(nnx.Linear(in_features, 4, rngs=rngs), rngs=rngs)",
        ),
        convert=_reparametrized(layer),
        reference=lambda symbol, context: reference(symbol, context, f"nnm.{name}"),
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
    _reparametrized_rule(_SPECTRAL, "SpectralNorm"),
    _reparametrized_rule(_WEIGHT, "WeightNorm"),
)
