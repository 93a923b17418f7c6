"""Strings in sizes, ``cfg['width']`` as Python prints them, in the quotes of their file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnx_migrate.edit.expressions import code_of, in_quotes
from nnx_migrate.edit.page import quote_of
from nnx_migrate.edit.statements import Statement
from nnx_migrate.edit.syntax import cst


def in_quotes_of(text: str, body: Sequence[Statement]) -> list[Statement]:
    """The statements with the quotes of a file around the strings that do not stand in its ``text``."""
    quote = quote_of(text)
    return [
        one.visit(_change_quotes(text, quote)) if _OTHER[quote] in code_of(one) else one
        for one in body
    ]


_OTHER = {'"': "'", "'": '"'}


def _change_quotes(text: str, quote: str) -> Any:
    class Requoted(cst.CSTTransformer):
        def visit_FormattedString(self, node: Any) -> bool:
            return False  # what is inside of its fields has other quotes for a reason

        def leave_SimpleString(self, original_node: Any, updated_node: Any) -> Any:
            is_plain = not updated_node.prefix and "\\" not in updated_node.raw_value
            is_other = updated_node.quote == _OTHER[quote] and original_node.value not in text
            return in_quotes(updated_node, quote) if is_plain and is_other else updated_node

    return Requoted()
