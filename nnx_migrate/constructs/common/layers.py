"""The three ways to build a layer.

*native*: ``nnx.Linear(in_features, features, ..., rngs=rngs)``; *own*: a layer of
``nnx_migrate.nn`` with Linen's signature plus keyword-only sizes; *factory*:
``nnm.factory.Dense`` with Linen's signature, for calls whose arguments the text does not show
(``*args``, ``**kwargs``, a function-valued field that may be None).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from nnx_migrate.constructs.common.base import (
    Arguments,
    Code,
    LayerCall,
    Refusal,
    bind,
    is_literal,
    same_call,
)
from nnx_migrate.constructs.common.rules import Layer
from nnx_migrate.edit.calls import Argument, named
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import Expression, ExpressionLike
from nnx_migrate.model import Confidence

_NNM = frozenset({"nnm"})
# A field of the layers that multiply matrices.
UNSUPPORTED_PRODUCT = {
    "dot_general_cls": "pass an equivalent `dot_general` function, or port the quantised product"
    " by hand"
}
# Size keys of the analysis -> keyword of factories and own layers.
SIZE_KEYWORDS: Mapping[str, str] = {"in_shape": "input_shape", "batch_shape": "batch_sizes"}


def read(layer: Layer, call: LayerCall) -> Arguments | Refusal:
    """The call's arguments, or why it is no call this layer can take."""
    arguments = bind(call.call, layer.fields)
    if isinstance(arguments, Refusal) or arguments.open:
        return arguments
    for name in layer.required_fields:
        if name not in arguments.values:
            return Refusal(f"{layer.name} without {name!r}", f"pass {name}=", call.call)
    for name, recipe in layer.recipes.items():
        value = arguments.values.get(name)
        if value is not None and not is_literal(value, None):
            return Refusal(f"{name!r} of {layer.name} has no NNX counterpart", recipe, value)
    return arguments


def missing_size(layer: Layer, call: LayerCall) -> Refusal | None:
    """Refusal when a size that the layer needs is not known."""
    for name in layer.sizes:
        if name not in call.sizes:
            return Refusal(
                f"size unknown: {name} of {layer.name}",
                f"build it by hand as `{layer.target}` with {name}, or run `nnx-migrate record`",
                call.call,
            )
    return None


def has_function(layer: Layer, arguments: Arguments) -> bool:
    """Whether a function-valued field that needs an adapter is given."""
    return any(
        name in arguments.values and not is_literal(arguments.values[name], None)
        for name in layer.functions
    )


def native(layer: Layer, call: LayerCall) -> Code | Refusal:
    """``target(size, *positional, keyword=..., rngs=rngs)``."""
    arguments = read(layer, call)
    if isinstance(arguments, Refusal):
        return arguments
    if arguments.open or has_function(layer, arguments):
        return factory(layer, call)
    missing = missing_size(layer, call)
    if missing:
        return missing
    return native_call(layer, call, arguments)


def native_call(
    layer: Layer,
    call: LayerCall,
    arguments: Arguments,
    extra: Mapping[str, ExpressionLike] = MappingProxyType({}),
    first: Sequence[ast.expr] = (),
) -> Code:
    """The native call once its arguments and sizes are known to be good.

    Args:
      extra: further keyword arguments.
      first: arguments of the call that come first by position.
    """
    made = [Argument(call.size(name)) for name in layer.sizes]
    nodes: list[ast.expr] = [*first]
    positional: set[str] = set()
    for name in layer.positional:
        if name not in arguments.values or not _leads(layer, name, call.call):
            break
        made.append(call.source.argument(arguments.values[name]))
        nodes.append(arguments.values[name])
        positional.add(name)
    for name, value in arguments.values.items():
        if name not in positional and not _has_no_keyword(layer, name):
            made.append(call.source.argument(value, layer.keywords.get(name, name)))
            nodes.append(value)
    made += [named(name, value) for name, value in extra.items()]
    made += [call.streams] if layer.takes_rngs else []
    leading = map(call.source.argument, first)
    node = made_call(
        layer.target, *leading, *made, left=call.comments_without(nodes), unit=call.source.unit
    )
    return Code(node, layer.imports)


def own(
    layer: Layer, call: LayerCall, sizes: Mapping[str, Expression] | None = None
) -> Code | Refusal:
    """``nnm.Layer(<Linen's arguments>, in_features=..., rngs=rngs)``."""
    arguments = read(layer, call)
    if isinstance(arguments, Refusal):
        return arguments
    if arguments.open:
        return factory(layer, call)
    if sizes is None:
        missing = missing_size(layer, call)
        if missing:
            return missing
        sizes = _known_sizes(layer, call)
    return Code(_linen_signature(layer, f"nnm.{layer.name}", call, sizes), _NNM)


def factory(layer: Layer, call: LayerCall) -> Code | Refusal:
    """``nnm.factory.Layer(<Linen's arguments>, in_features=..., rngs=rngs)``."""
    missing = missing_size(layer, call)
    if missing:
        return missing
    node = _linen_signature(layer, layer.factory, call, _known_sizes(layer, call))
    if not any(keyword.arg is None for keyword in call.call.keywords):
        return Code(node, layer.factory_imports)
    finding = f"{layer.name}(**...): `name` and `parent` must not be among the unpacked arguments"
    return Code(node, layer.factory_imports, (finding,), Confidence.REVIEW)


def _known_sizes(layer: Layer, call: LayerCall) -> dict[str, Expression]:
    keys = (*layer.sizes, *layer.optional_sizes)
    return {name: call.size(name) for name in keys if name in call.sizes}


def _linen_signature(
    layer: Layer, target: ExpressionLike, call: LayerCall, sizes: Mapping[str, Expression]
) -> Expression:
    extra = [named(SIZE_KEYWORDS.get(name, name), size) for name, size in sizes.items()]
    extra += [call.streams] if layer.takes_rngs else []
    return same_call(target, call.call, call.source, extra, limit=len(layer.fields))


def _leads(layer: Layer, name: str, call: ast.Call) -> bool:
    """Whether a field goes by position: required first ones do, others if the source's did."""
    return name in layer.keywords or layer.fields.index(name) < len(call.args)


def _has_no_keyword(layer: Layer, name: str) -> bool:
    """Fields without a counterpart (given as their default) and adapters that are None."""
    return name in layer.recipes or name in layer.functions
