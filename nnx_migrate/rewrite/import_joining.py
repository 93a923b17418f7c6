"""New names in an import statement that the file has for their module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnx_migrate.edit.data import NewImport
from nnx_migrate.edit.expressions import code_of
from nnx_migrate.edit.syntax import cst

_OWN = "nnx_migrate."  # of these modules one statement holds all names, as `isort` has it


def joined(module: cst.Module, wanted: Sequence[NewImport]) -> tuple[cst.Module, list[NewImport]]:
    """A file whose statements hold the names that go into them, and the names that need one."""
    body: list[Any] = list(module.body)
    left: list[NewImport] = []
    for one in wanted:
        at = next((i for i, line in enumerate(body) if _takes(line, one)), None)
        if at is None:
            left.append(one)
        else:
            body[at] = body[at].with_changes(body=[_with_name(body[at].body[0], one.name)])
    return module.with_changes(body=body), left


def _takes(line: Any, one: NewImport) -> bool:
    if one.name is None or one.alias is not None or not one.module.startswith(_OWN):
        return False
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return False
    small = line.body[0]
    return (
        isinstance(small, cst.ImportFrom)
        and not small.relative
        and small.module is not None
        and code_of(small.module) == one.module
        and small.lpar is None
        and not isinstance(small.names, cst.ImportStar)
        and all(alias.asname is None for alias in small.names)
    )


def _with_name(small: cst.ImportFrom, name: str | None) -> cst.ImportFrom:
    assert name is not None
    assert not isinstance(small.names, cst.ImportStar)
    old = [code_of(alias.name) for alias in small.names]
    names = sorted([*old, name]) if old == sorted(old) else [*old, name]
    return small.with_changes(names=[cst.ImportAlias(cst.Name(each)) for each in names])
