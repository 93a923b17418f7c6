"""Fields of built-in layers that a method reads: ``self.head.features``.

NNX's layers keep some of Linen's fields as attributes, a few under other names (``Layer.attributes``). What
is not listed there may be missing, or hold another value: a read of it is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from nnx_migrate.constructs import layer_of
from nnx_migrate.constructs.common.rules import Layer
from nnx_migrate.rewrite.classes.data import ClassRefused

RULE = "module-api"
# What both layers have besides their fields.
_BOTH = ("embedding", "attend", "__call__", "__class__")


def field_text(symbols: Sequence[str | None], node: ast.Attribute) -> str | None:
    """The attribute that ``node`` reads of a submodule, where it has another name.

    Args:
      symbols: the classes that the submodule may have.

    Raises:
      Refused: a built-in layer keeps no such attribute in NNX.
    """
    names = {_nnx_name(symbol, node) for symbol in symbols}
    if len(names) > 1:
        raise _unknown(node, "one of several layers")
    name = names.pop() if names else node.attr
    return name if name != node.attr else None


def lost_field(layers: Iterable[Layer], node: ast.Attribute) -> ClassRefused | None:
    """Why ``layer.features`` of what may be any of these layers cannot stay: one keeps it otherwise."""
    for layer in layers:
        has_same_name = layer.attributes is None or layer.attributes.get(node.attr) == node.attr
        if node.attr in layer.fields and not has_same_name:
            return _unknown(node, "one of several layers")
    return None


def _nnx_name(symbol: str | None, node: ast.Attribute) -> str:
    layer = layer_of(symbol)
    if layer is None or layer.attributes is None or node.attr in _BOTH:
        return node.attr
    if node.attr not in layer.attributes:
        raise _unknown(node, f"nn.{layer.name}")
    return layer.attributes[node.attr]


def _unknown(node: ast.Attribute, layer: str) -> ClassRefused:
    return ClassRefused(
        node,
        f"it reads {node.attr!r} of {layer}, which the layer of NNX may not keep",
        "read it where the layer is given it",
        RULE,
    )
