"""What a rewritten file keeps of the file that it was."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence

# Lines as Python counts them: a form feed or a Unicode separator ends none.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def comments(text: str) -> Counter[str]:
    """The comments of a file."""
    tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    return Counter(one.string.strip() for one in tokens if one.type == tokenize.COMMENT)


def lost_comments(before: str, after: str) -> list[str]:
    """Comments that are gone."""
    return list((comments(before) - comments(after)).elements())


def new_comments(before: str, after: str) -> list[str]:
    """Comments that came."""
    return list((comments(after) - comments(before)).elements())


def changed_statements(before: str, after: str) -> list[str]:
    """First lines of statements that are the same to Python, and stand there with another text."""
    old, new = _texts(before), _texts(after)
    return [
        next(iter(texts)).split("\n")[0]
        for key, texts in old.items()
        if new.get(key, set()) - texts
    ]


def _texts(text: str) -> dict[str, set[str]]:
    """Texts of top-level statements and methods, comments inside included, by their trees."""
    found: dict[str, set[str]] = {}
    lines = [line.encode() for line in _LINE.findall(text)]
    for statement in _statements(ast.parse(text)):
        found.setdefault(ast.dump(statement), set()).add(_segment(lines, statement))
    return found


def _segment(lines: Sequence[bytes], statement: ast.stmt) -> str:
    """What ``ast.get_source_segment`` gives, which splits the whole text for every statement."""
    last = statement.end_lineno or statement.lineno
    held = list(lines[statement.lineno - 1 : last])
    held[-1] = held[-1][: statement.end_col_offset]
    held[0] = held[0][statement.col_offset :]
    return b"".join(held).decode()


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    for statement in tree.body:
        yield statement
        if isinstance(statement, ast.ClassDef):
            yield from statement.body
