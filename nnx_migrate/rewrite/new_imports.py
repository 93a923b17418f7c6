"""New import statements where the order of the file's own wants them."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import Any, TypeAlias

from nnx_migrate.edit.data import NewImport
from nnx_migrate.edit.expressions import code_of
from nnx_migrate.edit.syntax import cst

_Key: TypeAlias = tuple[str, str]


def in_order(module: cst.Module, new: Sequence[Any]) -> cst.Module:
    """A file whose ``new`` statements stand in the order of the imports that they are among.

    Imports may be ordered by module alone (Google), or those of each kind for itself (isort). Where neither
    holds, and where comments or blank lines stand above a new one, it stays where it is.

    Args:
        new: statements of the module's body, most of them side by side.
    """
    body = list(module.body)
    for one in new:
        place = next((i for i, other in enumerate(body) if _is_same(one, other)), None)
        if place is None or body[place].leading_lines:
            continue
        start, end = _run(body, place)
        others = [*body[start:place], *body[place + 1 : end]]
        peers = _peers(others, one)
        keys = [_key(other) for other in peers]
        if not peers or keys != sorted(keys):
            continue
        rank = bisect(keys, _key(one))
        if rank == 0:
            continue  # what stands above the first of the block is the block's
        before = peers[rank - 1]
        statement = body.pop(place)
        at = next(i for i, other in enumerate(body) if other is before)
        body.insert(at + 1, statement)
    return module.with_changes(body=body)


def _is_same(one: Any, other: Any) -> bool:
    """Whether a statement of the body is a new one: it may have got comments since."""
    return _is_import(other) and other.body[0] is one.body[0]


def _is_import(statement: Any) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    return isinstance(statement.body[0], cst.Import | cst.ImportFrom)


def _run(body: Sequence[Any], place: int) -> tuple[int, int]:
    """The imports around a place that nothing stands between."""
    start = place
    while start and not body[start].leading_lines and _is_import(body[start - 1]):
        start -= 1
    end = place + 1
    while end < len(body) and _is_import(body[end]) and not body[end].leading_lines:
        end += 1
    return start, end


def _peers(others: Sequence[Any], one: Any) -> list[Any]:
    """The statements that its order is among: all, where all are in order, else those of its kind."""
    absolute = [other for other in others if not getattr(other.body[0], "relative", ())]
    keys = [_key(other) for other in absolute]
    if keys == sorted(keys):
        return absolute
    return [other for other in absolute if type(other.body[0]) is type(one.body[0])]


def _key(statement: Any) -> _Key:
    small = statement.body[0]
    if isinstance(small, cst.Import):
        return code_of(small.names[0].name).lower(), ""
    names = () if isinstance(small.names, cst.ImportStar) else small.names
    home = code_of(small.module).lower() if small.module is not None else ""
    return home, code_of(names[0].name).lower() if names else ""


# ---- new names in an import statement that the file has for their module

_OWN = "nnx_migrate."  # of these modules one statement holds all names, as `isort` has it


def join_imports(
    module: cst.Module, imports: Sequence[NewImport]
) -> tuple[cst.Module, list[NewImport]]:
    """A file whose statements hold the names that go into them, and the names that need one."""
    body: list[Any] = list(module.body)
    left: list[NewImport] = []
    for one in imports:
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
