"""Shared by the name rules: functions from a symbol to the text that replaces it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nnx_migrate.rewrite.rules.base import Code, Context, Refusal, last

Reference = Callable[[str, Context], Code | Refusal]


def renamed(namespace: str) -> Reference:
    """``flax.linen.x`` -> ``<namespace>.x``."""
    return lambda symbol, _: Code(
        f"{namespace}.{last(symbol)}", frozenset({root(f"{namespace}.{last(symbol)}")})
    )


def table(replacements: Mapping[str, str]) -> Reference:
    """Full symbol -> replacement text."""

    def reference(symbol: str, _: Context) -> Code:
        text = replacements[symbol]
        return Code(text, frozenset({root(text)}))

    return reference


def root(text: str) -> str:
    """Key of ``IMPORT_LINES`` that a dotted text needs."""
    head, *rest = text.split(".")
    return f"flax.{rest[0]}" if head == "flax" else head
