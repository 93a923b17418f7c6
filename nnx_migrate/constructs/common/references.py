"""Functions from a symbol to the name that replaces it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nnx_migrate.constructs.common.base import Code, Context, Refusal, last
from nnx_migrate.edit.expressions import dotted_node

Reference = Callable[[str, Context], Code | Refusal]


def in_namespace(namespace: str) -> Reference:
    """``flax.linen.x`` -> ``<namespace>.x``."""
    return lambda symbol, _: name(f"{namespace}.{last(symbol)}")


def table(replacements: Mapping[str, str]) -> Reference:
    """Full symbol -> name that replaces it."""

    def reference(symbol: str, _: Context) -> Code:
        return name(replacements[symbol])

    return reference


def name(dotted_name: str) -> Code:
    """A dotted name, and the import that it needs."""
    return Code(dotted_node(dotted_name), frozenset({root(dotted_name)}))


def root(text: str) -> str:
    """Key of ``IMPORTS`` that a dotted text needs."""
    head, *rest = text.split(".")
    return f"flax.{rest[0]}" if head == "flax" else head
