"""Where an ``ast`` node stands in the exact source text.

Edits are spans of text, so whatever no edit touches stays byte-identical. ``ast`` counts lines as
the tokenizer does (``\\n``, ``\\r\\n``, ``\\r``; a form feed ends no line) and columns in UTF-8
bytes; this module turns both into character offsets.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Span:
    """Half-open range of character offsets."""

    start: int
    end: int


@dataclass(frozen=True)
class Lines:
    """Line index of one source text."""

    text: str

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Offset of the first character of every line."""
        return (0, *(match.end() for match in _LINE_END.finditer(self.text)))

    def offset(self, line: int, byte_column: int) -> int:
        """Character offset of line ``line`` (from 1), UTF-8 byte column ``byte_column`` (from 0)."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        content = self.text[start:end]
        if content.isascii():
            return start + byte_column
        return start + len(content.encode("utf-8")[:byte_column].decode("utf-8"))

    def span(self, node: ast.AST) -> Span:
        """Span of a node that has a position."""
        return Span(
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of a character offset."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line_end(self, offset: int) -> int:
        """Offset just past the line (its end-of-line included) that holds ``offset``."""
        index = bisect_right(self.starts, offset)
        return self.starts[index] if index < len(self.starts) else len(self.text)

    @cached_property
    def newline(self) -> str:
        """The end-of-line the file uses first; ``\\n`` when it has none."""
        match = _LINE_END.search(self.text)
        return match.group() if match else "\n"
