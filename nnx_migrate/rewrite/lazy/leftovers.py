"""What a file still says of ``flax.linen`` in ways that no rewriting follows: strings, lookups by name.

A string may be code to run, a class to look up or just words: only a reader can tell, so it stays.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence

from nnx_migrate.model import Outcome
from nnx_migrate.source.walking import walk

_IN_STRING = re.compile(r"\bflax\.linen\b|\bfrom\s+flax\s+import\b[^\n]*\blinen\b")
_LINEN = re.compile(r"\blinen\b")
_BY_NAME = re.compile(r"\.?linen(\.\w+)*")
_FLAX = re.compile(r"\bflax\b")
_STRING = (
    "this string names flax.linen and stays as it is: if it is code to run or a name to look up,"
    " change it to nnx_migrate.linen"
)
_LOOKUP = "this may reach flax.linen, in a way that is not followed: change it to nnx_migrate.linen"

_SPEAKING = (ast.Constant, ast.Attribute, ast.Subscript, ast.Call)
Remark = tuple[int, int, Outcome, str]  # line, column; what nobody has to see is kept


def left(before: str, after: str) -> list[Remark]:
    """Places of ``before`` that name ``flax.linen`` and are still in ``after``, a later text of it."""
    if "linen" not in after or "flax" not in after:
        return []
    rest = after.replace("nnx_migrate.linen", "")
    if not _LINEN.search(rest) or not _FLAX.search(rest):
        return []
    remaining = Counter(key for key, _, _ in _places(after))
    found: list[Remark] = []
    if not remaining:
        return found
    for key, node, message in _places(before):
        if remaining[key] > 0:
            remaining[key] -= 1
            outcome = Outcome.KEPT if message == _STRING else Outcome.REFUSED
            found.append((node.lineno, node.col_offset + 1, outcome, message))
    return found


def speaks(nodes: Sequence[ast.AST]) -> bool:
    """Whether any of the nodes of a file names ``flax.linen`` in such a way."""
    return any(True for _ in _speaking(nodes))


def _places(text: str) -> Iterator[tuple[str, ast.expr, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings
            tree = ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # another finding tells of it
    for node, message in _speaking(walk(tree)):
        yield ast.dump(node), node, message


def _speaking(nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, str]]:
    words = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}  # docstrings
    for node in nodes:
        if not isinstance(node, _SPEAKING):
            continue
        message = _message(node, id(node) in words)
        if message is not None:
            yield node, message


def _message(node: ast.AST, is_statement: bool) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            if "linen" not in text:
                return None
            lines = text.splitlines()
            if is_statement:  # of a docstring, the examples that doctest runs
                lines = [one for one in lines if one.lstrip().startswith((">>>", "..."))]
            return _STRING if any(map(_IN_STRING.search, lines)) else None
        case ast.Attribute(attr="linen", value=value):
            return _LOOKUP if _FLAX.search(ast.unparse(value)) else None
        case ast.Subscript(slice=ast.Constant(value="linen"), value=value):
            return _LOOKUP if _FLAX.search(ast.unparse(value)) else None
        case ast.Call(args=args):
            named = any(
                isinstance(one, ast.Constant)
                and isinstance(one.value, str)
                and "linen" in one.value
                and _BY_NAME.fullmatch(one.value)
                for one in args
            )
            return _LOOKUP if named and _FLAX.search(ast.unparse(node)) else None
    return None
