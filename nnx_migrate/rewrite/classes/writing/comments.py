"""Comments of a class that no conversion has taken along: they stay at the head of their method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from nnx_migrate.edit.statements import after, as_block, comment_lines, is_docstring
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.walking import comments_in


def with_comments_of(old: Any, new: Any) -> Any:
    """The class ``new`` with every comment that ``old`` has."""
    missing = Counter(comments_in(old)) - Counter(comments_in(new))
    if not missing:
        return new
    now = {_name(one): one for one in as_block(new.body).body}
    heads: dict[str, list[str]] = {}
    for member in as_block(old.body).body:
        name = _name(member)
        present = Counter(comments_in(now[name])) if name in now else Counter[str]()
        for comment in comments_in(member):
            if present[comment]:
                present[comment] -= 1
            elif missing[comment]:
                missing[comment] -= 1
                heads.setdefault(name if name in now else "__init__", []).append(comment)
    return _with_heads(new, heads, [*missing.elements()])


def _name(member: Any) -> str:
    return member.name.value if isinstance(member, cst.FunctionDef) else ""


def _with_heads(cls: Any, heads: dict[str, list[str]], more: Sequence[str]) -> Any:
    """The class with comments at the heads of its methods, by name, and ``more`` at its own."""
    body = as_block(cls.body)
    members = []
    for member in body.body:
        comments = heads.pop(_name(member), [])
        members.append(_with_head(member, comments) if comments else member)
    left = [*more, *(comment for comments in heads.values() for comment in comments)]
    cls = cls.with_changes(body=body.with_changes(body=members))
    return _with_head(cls, left) if left else cls


def _with_head(definition: Any, comments: Sequence[str]) -> Any:
    """A definition with comments above its first statement, or a statement with comments above it."""
    lines = comment_lines(comments)
    if not isinstance(definition, cst.FunctionDef | cst.ClassDef):
        return after(lines, definition)
    body = as_block(definition.body)
    at = 1 if is_docstring(body.body[0]) else 0
    statements = [*body.body]
    if at == len(statements):
        footed = body.with_changes(footer=[*body.footer, *lines])
        return definition.with_changes(body=footed)
    statements[at] = after(lines, statements[at])
    return definition.with_changes(body=body.with_changes(body=statements))
