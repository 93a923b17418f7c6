"""Import statements of a rewritten file: Linen's that are no longer used go, NNX's come."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from nnx_migrate.constructs.common.base import IMPORTS
from nnx_migrate.edit.data import NewImport
from nnx_migrate.edit.expressions import code_of
from nnx_migrate.edit.imports import import_from, import_module, without_names
from nnx_migrate.edit.statements import (
    GONE,
    line,
    placed_at,
    rewritten_block,
    skip,
)
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.walking import loaded_names, names_in
from nnx_migrate.rewrite.new_imports import in_order, join_imports
from nnx_migrate.source.names import Import, canonical, name_parts, relative_target
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import is_name, walk

_BINDS = {"flax.core": "flax"}


class ImportConflict(Exception):
    """A name that new code needs is bound to something else in the file."""


def settle_imports(
    module: cst.Module,
    tree: ast.Module,
    needed_keys: frozenset[str],
    package: str,
    is_exported: Callable[[str], bool],
    replacements: frozenset[str] = frozenset(),
    means_other: Callable[[str, str], bool] = lambda _, __: False,
) -> cst.Module:
    """A file with its imports settled.

    Args:
        module: the file after every other edit.
        tree: the file as it was.
        needed_keys: keys of ``IMPORTS`` that its new code uses.
        package: package that relative imports start from.
        is_exported: whether other files take a name from this one.
        replacements: symbols beside Linen's that new code may have no use for.
        means_other: whether stars give a name another meaning than a symbol.

    Raises:
        ImportConflict: a needed name means something else in this file.
    """
    missing = sorted(name for name in needed_keys if not _is_imported(tree, IMPORTS[name]))
    for name in missing:
        bound = _BINDS.get(name, name)
        symbol = bound if name in _BINDS else _symbol(IMPORTS[name])
        is_own = _is_bound(tree, bound)
        if is_own or means_other(bound, symbol):
            home = "in this file" if is_own else "where files take it by a star"
            raise ImportConflict(
                f"the name {name!r} is needed for {code_of(_statement(IMPORTS[name]))!r} but means"
                f" something else {home}; rename it"
            )
    new_names = sorted(
        (IMPORTS[name] for name in missing), key=lambda one: (one.module, one.name or "")
    )
    module, new_names = join_imports(module, new_names)
    new = [line(one) for one in _statements(new_names)]
    used = loaded_names(module)

    def is_unused(bound: str, target: str) -> bool:
        symbol = canonical(target)
        may_go = (
            symbol == "flax.linen" or symbol.startswith("flax.linen.") or symbol in replacements
        )
        return may_go and bound not in used and not is_exported(bound)

    return in_order(_Settling(package, is_unused).module(module, new), new)


def used_imports(module: cst.Module, needed_keys: frozenset[str]) -> frozenset[str]:
    """Those of the keys whose names a file reads, where not all edits that need them were made."""
    used = loaded_names(module)
    return frozenset(one for one in needed_keys if _BINDS.get(one, one.partition(".")[0]) in used)


class _Settling:
    """Takes the unused names away, block by block."""

    def __init__(self, package: str, is_unused: Callable[[str, str], bool]) -> None:
        self._package, self._is_unused = package, is_unused

    def module(self, module: cst.Module, new: Sequence[Any]) -> cst.Module:
        """The module with ``new`` in the place of the first import that goes, or where they fit."""
        made = [self._line(one) for one in module.body]
        removals = (i for i, one in enumerate(made) if one is not None and not one)
        home = next(removals, None) if new else None
        if home is not None and home > _first_use(module, new):
            home = None
        if home is not None:
            made[home] = placed_at(module.body[home], new)
        body, left = rewritten_block(zip(map(self._inside, module.body), made, strict=True))
        if new and home is None:
            return _insert(module.with_changes(body=body), new)
        if not body and module.body:
            empty = module.with_changes(body=[], header=[*module.header, *left])
            return empty if empty.header else empty.with_changes(has_trailing_newline=False)
        return module.with_changes(body=body, footer=[*left, *module.footer])

    def _inside(self, statement: Any) -> Any:
        """A compound statement with its blocks settled."""
        if isinstance(statement, cst.SimpleStatementLine):
            return statement
        changed: dict[str, Any] = {}
        for name in ("body", "orelse", "finalbody"):
            part = getattr(statement, name, None)
            if isinstance(part, cst.IndentedBlock):
                changed[name] = self._block(part)
            elif isinstance(part, cst.Else | cst.Finally | cst.If):
                changed[name] = self._inside(part)
        if getattr(statement, "handlers", None):
            changed["handlers"] = [self._inside(one) for one in statement.handlers]
        changed = {k: v for k, v in changed.items() if v is not getattr(statement, k)}
        return statement.with_changes(**changed) if changed else statement

    def _block(self, block: cst.IndentedBlock) -> cst.IndentedBlock:
        inside = [self._inside(one) for one in block.body]
        made = [self._line(one) for one in block.body]
        if all(one is None for one in made) and inside == list(block.body):
            return block
        body, left = rewritten_block(zip(inside, made, strict=True))
        return block.with_changes(body=body or [skip()], footer=[*left, *block.footer])

    def _line(self, statement: Any) -> Sequence[Any] | None:
        """What a line becomes without the unused names that it imports; None: itself."""
        if not isinstance(statement, cst.SimpleStatementLine):
            return None
        statements: list[Any] = []
        comments: list[str] = []
        for small in statement.body:
            unused_positions = self._unused_positions(small)
            if not unused_positions:
                statements.append(small)
            elif len(unused_positions) < len(_aliases(small)):
                rest, lost_comments = without_names(small, unused_positions)
                statements.append(rest)
                comments += lost_comments
        if len(statements) == len(statement.body) and all(
            map(operator.is_, statements, statement.body)
        ):
            return None
        if not statements:
            return GONE
        last = statements[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        return [placed_at(statement.with_changes(body=[*statements[:-1], last]), (), comments)]

    def _unused_positions(self, small: Any) -> list[int]:
        """Positions of the unused names of Linen that an import statement binds."""
        if isinstance(small, cst.Import):
            return [i for i, one in enumerate(small.names) if self._is_gone(one)]
        if not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
            return []
        module = code_of(small.module) if small.module is not None else None
        home = relative_target(self._package, len(small.relative), module)
        return [
            i
            for i, one in enumerate(small.names)
            if self._is_unused(_bound(one) or code_of(one.name), f"{home}.{code_of(one.name)}")
        ]

    def _is_gone(self, alias: cst.ImportAlias) -> bool:
        name, bound = code_of(alias.name), _bound(alias)
        if bound is None and name not in ("flax.linen", "nnx_migrate.linen"):
            return False
        return self._is_unused(bound or name.partition(".")[0], name)


def _aliases(small: Any) -> Sequence[Any]:
    found: Sequence[Any] = small.names
    return found


def _bound(alias: cst.ImportAlias) -> str | None:
    return None if alias.asname is None else code_of(alias.asname.name)


def _statement(one: NewImport) -> Any:
    if one.name is None:
        return import_module(one.module, one.alias)
    return import_from(one.module, [(one.name, one.alias)])


def _statements(new_imports: Sequence[NewImport]) -> Iterator[Any]:
    """The statements for new names, one for all from the same module; aliases stand alone (as isort)."""
    names: dict[str, list[tuple[str, str | None]]] = {}
    for one in new_imports:
        if one.name is not None and one.alias is None:
            names.setdefault(one.module, []).append((one.name, None))
    for one in new_imports:
        if one.name is None or one.alias is not None:
            yield _statement(one)
        elif one.module in names:
            yield import_from(one.module, names.pop(one.module))


def _first_use(module: cst.Module, new: Sequence[Any]) -> int:
    """The index of the first statement that reads what new imports bind: it may run with the module."""
    bound = {
        _bound(alias) or code_of(alias.name).partition(".")[0]
        for one in new
        for alias in _aliases(one.body[0])
    }
    uses = (i for i, one in enumerate(module.body) if not bound.isdisjoint(names_in(one)))
    return next(uses, len(module.body))


def _insert(module: cst.Module, new: Sequence[Any]) -> cst.Module:
    """New imports behind the first that mentions flax, the last above their use, or the docstring."""
    at = 0
    for index, statement in enumerate(module.body[: _first_use(module, new)]):
        for small in getattr(statement, "body", ()) if _is_line(statement) else ():
            if isinstance(small, cst.Import | cst.ImportFrom):
                at = index + 1
                if _mentions_flax(small):
                    return _with(module, at, new)
            elif at == 0 and index == 0 and _is_docstring(small):
                at = 1
    return _with(module, at, new)


def _is_line(statement: Any) -> bool:
    return isinstance(statement, cst.SimpleStatementLine)


def _with(module: cst.Module, at: int, new: Sequence[Any]) -> cst.Module:
    body = [*module.body[:at], *new, *module.body[at:]]
    if not module.body:
        return module.with_changes(body=body, has_trailing_newline=True)
    return module.with_changes(body=body)


def _mentions_flax(small: Any) -> bool:
    if isinstance(small, cst.ImportFrom):
        home = small.module is not None and not small.relative and code_of(small.module)
        names = () if isinstance(small.names, cst.ImportStar) else small.names
        return bool(home and home.startswith("flax")) or any(map(_is_of_flax, names))
    return any(map(_is_of_flax, small.names))


def _is_of_flax(alias: cst.ImportAlias) -> bool:
    return code_of(alias.name).startswith("flax")


def _is_docstring(small: Any) -> bool:
    return isinstance(small, cst.Expr) and isinstance(small.value, cst.BaseString)


def _symbol(one: NewImport) -> str:
    return one.module if one.name is None else f"{one.module}.{one.name}"


def _is_imported(tree: ast.Module, one: NewImport) -> bool:
    bound = one.alias or one.name or one.module
    target = (_symbol(one), bound)
    return any(target in set(_pairs(statement)) for statement in tree.body)


def _pairs(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """(what, bound name) of every name an import statement binds."""
    if isinstance(statement, ast.Import):
        yield from ((a.name, a.asname or a.name) for a in statement.names)
    if isinstance(statement, ast.ImportFrom) and statement.level == 0:
        yield from ((f"{statement.module}.{a.name}", a.asname or a.name) for a in statement.names)


_NAMED = (
    ast.ClassDef
    | ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.ExceptHandler
    | ast.MatchAs
    | ast.MatchStar
)


@lru_cache(maxsize=1 << 10)  # every attempt of a run asks
def _is_bound(tree: ast.Module, name: str) -> bool:
    for node in walk(tree):
        if is_name(node, name) and not isinstance(node.ctx, ast.Load):
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


def is_imported(project: Project, module: Module, name: str) -> bool:
    """Whether another file imports ``name`` from this one, or reads it there: ``models.nn.Dense``."""
    importers = _importers(project).get(f"{module.name}.{name}", frozenset())
    return bool(importers - {module.name})


@lru_cache(maxsize=2)  # every file of a project asks
def _importers(project: Project) -> Mapping[str, AbstractSet[str]]:
    """The modules that import each symbol, or read what another one imports of flax."""
    found: dict[str, set[str]] = {}
    of_flax: set[str] = set()
    for module in project.modules.values():
        for name, binding in module.table.items():
            if isinstance(binding, Import):
                found.setdefault(binding.target, set()).add(module.name)
                of_flax |= {name} if binding.target.partition(".")[0] == "flax" else set()
    for module in project.modules.values():
        for node in module.nodes:
            if isinstance(node, ast.Attribute) and node.attr in of_flax and name_parts(node.value):
                owner = project.resolve(node.value, Scope(module))
                if owner in project.modules:
                    found.setdefault(f"{owner}.{node.attr}", set()).add(module.name)
    return found
