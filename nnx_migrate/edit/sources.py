"""Both syntax trees of a file, paired once and kept as long as the ``ast`` one lives."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakKeyDictionary

from nnx_migrate.edit.calls import Comments, argument_comments, space_after
from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.parsing import check_line_ends, parse
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.walking import children

Line: TypeAlias = "cst.SimpleStatementLine | cst.SimpleStatementSuite"


@dataclass(frozen=True)
class Sources:
    """The LibCST tree of a file and what is known of its nodes by ``ast`` node.

    Attributes:
        pairs: LibCST nodes by the id of their ``ast`` node.
        lines: the line of each simple statement, by the id of its ``ast`` node.
        columns: where each of these lines begins, by its id.
    """

    module: cst.Module
    pairs: dict[int, cst.CSTNode]
    lines: dict[int, Line]
    columns: dict[int, int]
    comments: dict[int, Comments]  # of arguments, by the id of their value
    nodes: tuple[ast.AST, ...]  # so that no id is given twice


_CACHE: WeakKeyDictionary[ast.Module, Sources] = WeakKeyDictionary()


def sources_of(text: str, tree: ast.Module) -> Sources:
    """Both trees of a file.

    Raises:
        EditError: LibCST does not read the file.
    """
    known = _CACHE.get(tree)
    if known is None:
        known = _CACHE[tree] = _read(text, tree)
    return known


def _read(text: str, tree: ast.Module) -> Sources:
    from nnx_migrate.edit.pairing import PairingError, pair

    check_line_ends(text)
    module = parse(text)
    if module.code != text:
        raise EditError("LibCST would change white space in it")
    try:
        pairs = pair(tree, module)
    except PairingError as error:
        raise EditError(f"its two syntax trees differ ({error}); please report this") from error
    smalls = {id(node): key for key, node in pairs.items() if isinstance(key, ast.stmt)}
    lines: dict[int, Line] = {}
    columns: dict[int, int] = {}
    comments: dict[int, Comments] = {}
    for line in _lines(module):
        for small in line.body:
            if id(small) in smalls:
                lines[id(smalls[id(small)])] = line
                columns.setdefault(id(line), smalls[id(small)].col_offset)
    for key, node in pairs.items():
        if isinstance(key, ast.Call) and isinstance(node, cst.Call):
            comments |= _of_arguments(key, node)
    by_id = {id(key): node for key, node in pairs.items()}
    return Sources(module, by_id, lines, columns, comments, tuple(pairs))


def _lines(node: cst.CSTNode) -> list[Line]:
    """Every line of simple statements."""
    found: list[Line] = []
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            found.append(one)
            continue
        if isinstance(one, cst.BaseExpression):
            continue
        todo += children(one, code=True)
    return found


def _of_arguments(call: ast.Call, node: cst.Call) -> dict[int, Comments]:
    """Comments of the arguments of one call, by the id of the argument's value."""
    spaces = (node.whitespace_before_args, *(space_after(one) for one in node.args))
    if not any(isinstance(one, cst.ParenthesizedWhitespace) for one in spaces):
        return {}
    found = {}
    positional, keywords = iter(call.args), iter(call.keywords)
    for one, comments in zip(node.args, argument_comments(node), strict=True):
        if one.keyword is None and one.star != "**":
            value: ast.expr = next(positional)
        elif one.keyword is not None and _is_apart(call, one.keyword.value):
            value = getattr(call, one.keyword.value)
        else:
            value = next(keywords).value
        if comments:
            found[id(value)] = comments
    return found


def _is_apart(call: ast.Call, keyword: str) -> bool:
    """Whether an argument was taken out of the call's keywords when the tree was read."""
    return keyword in call._fields[3:] and getattr(call, keyword, None) is not None
