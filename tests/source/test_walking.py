"""Our walk is Python's, without what says whether a name is read or written."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from nnx_migrate.source.walking import walk

FILES = (*sorted(Path(__file__).parents[1].glob("source/*.py")), Path(ast.__file__))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_nodes_of_a_file_come_in_pythons_order(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert walk(tree) == [n for n in ast.walk(tree) if not isinstance(n, ast.expr_context)]


def test_patterns_dictionaries_and_defaults_are_walked() -> None:
    text = """
def f(a, *, b, c: int = 1, **d) -> {**e}:
    match a:
        case {"k": C(x=1) as y, **z} | [*rest, 2]: pass
    global g
    try: pass
    except* E as error: raise
    return f"{a!r:>{b}}"
"""
    tree = ast.parse(text)
    assert walk(tree) == [n for n in ast.walk(tree) if not isinstance(n, ast.expr_context)]
