"""Import statements of a rewritten file: Linen's that are no longer used go, NNX's come."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nnx_migrate.constructs.base import IMPORT_LINES
from nnx_migrate.source.names import canonical, relative_target
from nnx_migrate.source.project import Module
from nnx_migrate.source.spans import Lines

_BINDS = {"flax.core": "flax"}


class ImportConflict(Exception):
    """A name that new code needs is bound to something else in the file."""


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


def fix_imports(
    text: str, needed: frozenset[str], package: str, is_exported: Callable[[str], bool]
) -> str:
    """Text with its imports settled.

    Args:
        text: a file's text after every other edit.
        needed: keys of ``IMPORT_LINES`` that its new code uses.
        package: package that relative imports start from.
        is_exported: whether other files take a name from this one.

    Raises:
        ImportConflict: a needed name means something else in this file.
    """
    # As it is written: a declaration that is read as another call needs its import, too.
    module = Module("rewritten", "rewritten", text, ast.parse(text, type_comments=False))
    lines, used = module.lines, _loaded(module.tree)
    missing = sorted(name for name in needed if not _is_imported(module.tree, name))
    for name in missing:
        if _is_bound(module.tree, _BINDS.get(name, name)):
            raise ImportConflict(
                f"the name {name!r} is needed for {IMPORT_LINES[name]!r} but means something else"
                " in this file; rename it"
            )
    new_lines = [IMPORT_LINES[name] for name in missing]
    edits: list[_Edit] = []
    home: ast.stmt | None = None
    for block in _import_blocks(module.tree.body):
        unused = [(one, _unused(one, used, package, is_exported)) for one in _imports_in(block)]
        whole = [one for one, gone in unused if len(gone) == len(one.names)]
        edits += [_without(lines, one, gone) for one, gone in unused if gone and one not in whole]
        if whole and home is None and new_lines and block is module.tree.body:
            home = whole.pop(0)
            span = lines.span(home)
            edits.append(_Edit(span.start, span.end, lines.newline.join(new_lines)))
        if block is not module.tree.body and len(whole) == len(block):
            span = lines.span(whole.pop(0))  # a block needs a statement
            edits.append(_Edit(span.start, span.end, "pass"))
        edits += [_removed(lines, one) for one in whole]
    if home is None and new_lines:
        edits.append(_inserted(lines, module.tree, new_lines))
    return _applied(text, edits)


def _loaded(tree: ast.Module) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200
    ]
    return names | {word for text in strings for word in _quoted(text)}


def _quoted(text: str) -> Iterator[str]:
    """Names in a quoted annotation or ``__all__``; prose has spaces."""
    if " " not in text.strip() and text:
        yield text.split(".")[0].split("[")[0].strip("'\"")


def _import_blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The module's statements and, one by one, the blocks of its compound statements."""
    yield body
    for statement in body:
        for block in _blocks(statement):
            yield from _import_blocks(block)


def _imports_in(block: list[ast.stmt]) -> list[ast.Import | ast.ImportFrom]:
    return [one for one in block if isinstance(one, ast.Import | ast.ImportFrom)]


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    for handler in getattr(statement, "handlers", []):
        yield handler.body


def _unused(
    statement: ast.Import | ast.ImportFrom,
    used: set[str],
    package: str,
    is_exported: Callable[[str], bool],
) -> list[ast.alias]:
    gone = []
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            target, bound = alias.name, alias.asname or alias.name
            if alias.asname is None and alias.name not in ("flax.linen", "nnx_migrate.linen"):
                continue
            bound = alias.asname or alias.name.partition(".")[0]
        else:
            target = f"{relative_target(package, statement.level, statement.module)}.{alias.name}"
            bound = alias.asname or alias.name
        symbol = canonical(target)
        is_linen = symbol == "flax.linen" or symbol.startswith("flax.linen.")
        if is_linen and alias.name != "*" and bound not in used and not is_exported(bound):
            gone.append(alias)
    return gone


def _without(lines: Lines, statement: ast.Import | ast.ImportFrom, gone: list[ast.alias]) -> _Edit:
    """The statement with some names left out; comments between names stay where they were."""
    first, last = lines.span(statement.names[0]).start, lines.span(statement.names[-1]).end
    kept = [alias for alias in statement.names if alias not in gone]
    if "(" not in lines.segment(statement) or not _line_breaks(lines.text[first:last]):
        return _Edit(first, last, ", ".join(lines.segment(alias) for alias in kept))
    text, cut = "", first
    for index, alias in enumerate(statement.names):
        following = statement.names[index + 1] if index + 1 < len(statement.names) else None
        end = lines.span(following).start if following else last
        if alias in gone:
            text += lines.text[cut : lines.span(alias).start]
            cut = end
    if statement.names[-1] not in gone:
        return _Edit(first, last, text + lines.text[cut:last])
    # the comma before the last name becomes the last comma; its own goes, with its comment
    own = re.compile(r"[ \t]*,?[ \t]*(#[^\r\n]*)?").match(lines.text, last)
    return _Edit(first, own.end() if own else last, text.rstrip())


def _line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _removed(lines: Lines, statement: ast.stmt) -> _Edit:
    span = lines.span(statement)
    start, end = lines.line_start(span.start), lines.line_end(span.end)
    alone = not lines.text[start : span.start].strip() and not lines.text[span.end : end].strip()
    return _Edit(start, end, "") if alone else _Edit(span.start, span.end, "pass")


def _inserted(lines: Lines, tree: ast.Module, new_lines: list[str]) -> _Edit:
    after: ast.stmt | None = None
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            after = statement
            if _mentions_flax(statement):
                break
        elif after is None and _is_docstring(statement):
            after = statement
    text = lines.newline.join(new_lines) + lines.newline
    if after is None:
        return _Edit(0, 0, text)
    end = lines.line_end(lines.span(after).end)
    if end == len(lines.text) and not lines.text.endswith(("\n", "\r")):
        text = lines.newline + text.rstrip("\r\n")
    return _Edit(end, end, text)


def _mentions_flax(statement: ast.Import | ast.ImportFrom) -> bool:
    module = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
    return module.startswith("flax") or any(a.name.startswith("flax") for a in statement.names)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_imported(tree: ast.Module, name: str) -> bool:
    wanted = ast.dump(ast.parse(IMPORT_LINES[name]).body[0])
    wanted_aliases = _pairs(ast.parse(IMPORT_LINES[name]).body[0])
    return any(
        ast.dump(statement) == wanted or wanted_aliases <= _pairs(statement)
        for statement in tree.body
    )


def _pairs(statement: ast.stmt) -> set[tuple[str, str]]:
    """(what, bound name) of every name an import statement binds."""
    if isinstance(statement, ast.Import):
        return {(a.name, a.asname or a.name) for a in statement.names}
    if isinstance(statement, ast.ImportFrom) and statement.level == 0:
        return {(f"{statement.module}.{a.name}", a.asname or a.name) for a in statement.names}
    return set()


_NAMED = (
    ast.ClassDef
    | ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.ExceptHandler
    | ast.MatchAs
    | ast.MatchStar
)


def _is_bound(tree: ast.Module, name: str) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, _NAMED) and node.name == name:
            return True
        if isinstance(node, ast.MatchMapping) and node.rest == name:
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name.split(".")[0]) == name:
            return not (name == "flax" and node.name.startswith("flax"))
    return False


def _applied(text: str, edits: list[_Edit]) -> str:
    for edit in sorted(edits, key=lambda one: one.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text
