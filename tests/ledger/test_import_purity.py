"""The ledger shares no code with the rewriter and needs nothing beyond the standard library."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import nnx_migrate.ledger

FILES = sorted(Path(nnx_migrate.ledger.__file__).parent.glob("*.py"))


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_ledger_module_imports_only_the_standard_library_and_plain_data(path: Path) -> None:
    foreign = {
        name
        for name in imported(path)
        if name.partition(".")[0] not in sys.stdlib_module_names
        and name != "nnx_migrate.model"
        and not name.startswith("nnx_migrate.ledger")
    }
    assert foreign == set()
