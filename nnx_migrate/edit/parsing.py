"""LibCST's tree of a text, or one line about why there is none."""

from __future__ import annotations

import re

from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.syntax import cst

_LONE_RETURN = re.compile(r"\r(?!\n)")


def check_line_ends(text: str) -> None:
    """Refuse line ends that LibCST reads otherwise than Python.

    Raises:
        EditError: there is one.
    """
    if _LONE_RETURN.search(text):
        raise EditError("it has line ends of a carriage return alone; use \\n or \\r\\n")


def parse(text: str, first: int = 1) -> cst.Module:
    """LibCST's tree of a text that begins on the line ``first`` of its file.

    Raises:
        EditError: LibCST does not read it.
    """
    try:
        return cst.parse_module(text)
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError) as error:
        raise EditError(f"LibCST cannot read it: {_one_line(error, first)}") from error


def _one_line(error: BaseException, first: int) -> str:
    if isinstance(error, cst.ParserSyntaxError):
        return f"{error.message} (line {first + error.raw_line - 1})"
    return " ".join(str(error).split())
