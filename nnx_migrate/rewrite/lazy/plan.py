"""Which edits make one file lazy: plain data about its ``ast``; no text is touched here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from nnx_migrate.edit.data import EditError, ImportChange, NewImport
from nnx_migrate.rewrite.lazy.scopes import Bound, Reading, Scope, is_linen, meanings, read
from nnx_migrate.rewrite.lazy.strings import module_strings
from nnx_migrate.source.walking import is_name

LINEN = "flax.linen"
LAZY = "nnx_migrate.linen"
Stays = Callable[[ast.AST], bool]  # whether a place is left with Linen


@dataclass
class Plan:
    """Edits of one file, by ``ast`` node."""

    imports: dict[ast.stmt, ImportChange] = field(default_factory=dict)
    owners: list[ast.Attribute] = field(default_factory=list)  # x.linen -> nnx_migrate.linen
    packages: list[ast.expr] = field(default_factory=list)  # flax -> nnx_migrate
    names: list[tuple[ast.Name, str]] = field(default_factory=list)  # with a second alias
    strings: list[ast.expr] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether the file stays as it is."""
        return not (self.imports or self.owners or self.packages or self.names or self.strings)


@dataclass(frozen=True)
class FileParts:
    """A file of which a part stays Linen.

    ``stays`` tells the places that do, ``pinned`` the imports that a comment keeps. ``unused_stay``: so do imported names that nothing in the
    file uses (other files may). ``handed_on`` names that others take from here and keep Linen.
    ``elsewhere`` gives the symbol below ``flax.linen`` of a name that comes from another file of the
    project and stays Linen there.
    """

    stays: Stays
    pinned: Stays
    unused_stay: bool = False
    handed_on: frozenset[str] = frozenset()
    elsewhere: Callable[[ast.ImportFrom, int], str | None] = lambda statement, position: None


def plan_file(
    nodes: Sequence[ast.AST], is_package: bool = False, parts: FileParts | None = None
) -> Plan:
    """Decide how one file becomes lazy.

    Args:
        nodes: the module of the file and all below it, as `walk` gives them.
        is_package: the file is an ``__init__.py``: others may take ``flax`` from it.
        parts: which places stay Linen; None: none does.
    """
    return _Planner(nodes, is_package, parts).plan()


class _Planner:
    def __init__(self, nodes: Sequence[ast.AST], is_package: bool, parts: FileParts | None) -> None:
        self.is_package = is_package
        self.mixed = parts
        self.plan_ = Plan()
        self.nodes = nodes
        self.statements = [
            one for one in self.nodes if isinstance(one, ast.Import | ast.ImportFrom)
        ]
        self._reading: Reading | None = None

    @property
    def reading(self) -> Reading:
        """Scopes and loads, read when they are first asked for."""
        if self._reading is None:
            module = self.nodes[0]
            assert isinstance(module, ast.Module)
            self._reading = read(module)
        return self._reading

    def stays(self, node: ast.AST) -> bool:
        return self.mixed is not None and self.mixed.stays(node)

    def plan(self) -> Plan:
        """All edits of the file."""
        roots = self.chains()
        for statement in self.statements:
            if isinstance(statement, ast.Import):
                self.import_(statement)
            else:
                self.import_from(statement)
        self.add_imports(roots)
        strings = module_strings(self.nodes)
        self.plan_.strings = [one for one in strings if not self.stays(one)]
        if self.plan_.owners or self.plan_.packages:
            self.check_our_name()
        return self.plan_

    def check_our_name(self) -> None:
        """Raise EditError where ``nnx_migrate``, which is written for ``flax``, means something else."""
        for node in self.nodes:
            if _binds_our_name(node):
                line = getattr(node, "lineno", 1)
                raise EditError(
                    f"line {line} gives the name nnx_migrate to something else; rename it"
                )

    def chains(self) -> list[Bound]:
        """``flax.linen`` where ``flax`` is imported: note the edits, return where it comes from."""
        has_chains = any(
            isinstance(one, ast.Attribute) and one.attr == "linen" for one in self.nodes
        )
        calls = (one for one in self.nodes if isinstance(one, ast.Call))
        questions = [one for one in calls if _asks_for_linen(one)]
        if not has_chains and not questions:
            return []
        roots: list[Bound] = []
        for node, scope in self.reading.attributes:
            if node.attr == "linen" and not self.stays(node):
                found = self.flax(node.value, scope)
                roots += _needing_an_import(found)
                self.plan_.owners += [node] if found else []
        scopes = {id(node): scope for node, scope in self.reading.names}
        for call in questions:
            package = call.args[0]
            if isinstance(package, ast.Name) and not self.stays(call):
                found = self.flax(package, scopes[id(package)])
                roots += _needing_an_import(found)
                self.plan_.packages += [package] if found else []
        return roots

    def flax(self, node: ast.expr, scope: Scope) -> list[Bound]:
        """Where an expression that may be the package ``flax`` has it from."""
        return [bound for symbol, bound in meanings(node, scope) if symbol == "flax"]

    def import_(self, statement: ast.Import) -> None:
        """``import flax.linen as nn, flax.linen``."""
        places = [i for i, one in enumerate(statement.names) if is_linen(one.name)]
        if not places:
            return
        names = [one.name for one in statement.names]
        after: list[NewImport] = []
        for position in places:
            alias = statement.names[position]
            if alias.asname is None:
                if self.unnamed_stays():
                    after += self.beside(alias.name)
                    continue
                if self.flax_in_use():
                    names[position] = "flax"
                    after.append(NewImport(_lazy(alias.name)))
                    continue
            elif not self.is_renamed(statement, position):
                after += self.second(statement, position, _lazy(alias.name), None)
                continue
            names[position] = _lazy(alias.name)
        self.settle(statement, ImportChange(names=tuple(names), after=tuple(after)))

    def import_from(self, statement: ast.ImportFrom) -> None:
        """``from flax import linen``, ``from flax.linen import Dense``."""
        module = statement.module or ""
        if statement.level or not (module == "flax" or is_linen(module)):
            self.from_the_project(statement)
            return
        names = statement.names
        places = [i for i, one in enumerate(names) if is_linen(f"{module}.{one.name}")]
        if module == "flax" and names[0].name == "*":
            self.star(statement)
            return
        renamed = [i for i in places if self.is_renamed(statement, i)]
        after: list[NewImport] = []
        for position in set(places) - set(renamed):
            after += self.second(statement, position, _lazy(module), names[position].name)
        positions = frozenset() if len(renamed) == len(names) else frozenset(renamed)
        if renamed or after:
            change = ImportChange(
                module=_lazy(module) if renamed else None, positions=positions, after=tuple(after)
            )
            self.settle(statement, change)

    def star(self, statement: ast.ImportFrom) -> None:
        """``from flax import *`` where ``linen`` is used."""
        uses = []
        for node, scope in self.reading.names:
            bounds = scope.lookup(node.id)
            if any(one.symbol == LAZY for one in bounds):
                return
            uses += [node for one in bounds if one.statement is statement]
        if uses and not any(self.stays(one) for one in uses):
            self.settle(statement, ImportChange(after=(NewImport("nnx_migrate", "linen"),)))

    def from_the_project(self, statement: ast.ImportFrom) -> None:
        """``from project.common import nn`` where ``nn`` stays Linen for others."""
        after: list[NewImport] = []
        for position in range(len(statement.names) if self.mixed else 0):
            assert self.mixed is not None
            symbol = self.mixed.elsewhere(statement, position)
            if symbol is not None and is_linen(symbol):
                module, _, name = _lazy(symbol).rpartition(".")
                after += self.second(statement, position, module, name)
        if after:
            self.settle(statement, ImportChange(after=tuple(after)))

    def settle(self, statement: ast.stmt, change: ImportChange) -> None:
        unchanged = isinstance(statement, ast.Import) and change.names == tuple(
            one.name for one in statement.names
        )
        if unchanged:
            change = replace(change, names=None)
        if change != ImportChange():
            self.plan_.imports[statement] = change

    # A file of which a part stays Linen.

    def is_renamed(self, statement: ast.stmt, position: int) -> bool:
        """Whether an imported name becomes the lazy one: nothing that stays Linen uses it."""
        if self.mixed is None:
            return True
        if self.mixed.pinned(statement):
            return False
        uses = self.uses(statement, position)
        alias = statement.names[position]  # type: ignore[attr-defined]
        if (alias.asname or alias.name) in self.mixed.handed_on:
            return False
        if not uses:
            return not self.mixed.unused_stay
        return not any(map(self.mixed.stays, uses))

    def uses(self, statement: ast.stmt, position: int) -> list[ast.Name]:
        return [
            node
            for node, scope in self.reading.names
            if any(
                one.statement is statement and one.alias == position
                for one in scope.lookup(node.id)
            )
        ]

    def second(
        self, statement: ast.Import | ast.ImportFrom, position: int, module: str, name: str | None
    ) -> list[NewImport]:
        """The lazy name beside the Linen one, for those uses that do not stay."""
        if self.mixed is None or self.mixed.pinned(statement):
            return []
        uses = [one for one in self.uses(statement, position) if not self.stays(one)]
        if not uses or name == "*":
            return []
        alias = self.unused_name(uses[0].id)
        known = {id(node) for node, _ in self.plan_.names}
        self.plan_.names += [(one, alias) for one in uses if id(one) not in known]
        return [NewImport(module, name, alias)]

    def unused_name(self, name: str) -> str:
        """``lnn`` for ``nn``, ``LazyDense`` for ``Dense``: a name the file does not have."""
        used_names = {one.id for one in self.nodes if isinstance(one, ast.Name)}
        used_names |= {one.arg for one in self.nodes if isinstance(one, ast.arg)}
        used_names |= {
            alias.asname or alias.name.partition(".")[0]
            for one in self.statements
            for alias in one.names
        }
        used_names |= {
            one.name
            for one in self.nodes
            if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        alias = (
            f"Lazy{name}" if name[:1].isupper() else f"l{name}" if name == "nn" else f"lazy_{name}"
        )
        while alias in used_names:
            alias += "_"
        return alias

    # ``flax`` as a name: kept where something else uses it.

    def unnamed_stays(self) -> bool:
        """Whether places that stay Linen go through ``import flax.linen``."""
        if self.mixed is None:
            return False
        chains = [
            node
            for node, scope in self.reading.attributes
            if node.attr == "linen" and self.flax(node.value, scope)
        ]
        if not chains:
            return self.mixed.unused_stay
        return any(map(self.mixed.stays, chains))

    def beside(self, module: str) -> list[NewImport]:
        return [NewImport(_lazy(module))] if self.plan_.owners else []

    def flax_in_use(self) -> bool:
        """Whether the file needs the name ``flax`` itself, bound by nothing else."""
        binders = [
            one
            for one in self.statements
            for alias in one.names
            if (alias.asname or alias.name.partition(".")[0]) == "flax"
            and not (isinstance(one, ast.Import) and is_linen(alias.name))
        ]
        return not binders and self.flax_is_used()

    def flax_is_used(self) -> bool:
        rewritten = {id(one) for one in self.plan_.packages}
        rewritten |= {id(one.value) for one in self.plan_.owners}
        loads = (one for one in self.nodes if is_name(one, "flax"))
        if self.is_package or any(id(one) not in rewritten for one in loads):
            return True
        return any(map(_names_flax, self.nodes))

    def add_imports(self, roots: Iterable[Bound]) -> None:
        """Import ``nnx_migrate.linen`` beside whatever the rewritten places have ``flax`` from."""
        for bound in _distinct(roots):
            statement = bound.statement
            known = self.plan_.imports.get(statement, ImportChange())
            modules = [*(known.names or ()), *(one.module for one in known.after)]
            if any(one == LAZY or one.startswith(LAZY + ".") for one in modules):
                continue
            if isinstance(statement, ast.Import) and self.is_replaced(statement):
                names = known.names or tuple(one.name for one in statement.names)
                change = replace(known, names=tuple(LAZY if n == "flax" else n for n in names))
            else:
                change = replace(known, after=(*known.after, NewImport(LAZY)))
            self.plan_.imports[statement] = change

    def is_replaced(self, statement: ast.Import) -> bool:
        """Whether ``import flax`` serves nothing but what is rewritten."""
        plain = [one for one in statement.names if one.name == "flax" and one.asname is None]
        return len(plain) == 1 and self.mixed is None and not self.flax_is_used()


def _lazy(module: str) -> str:
    return "nnx_migrate" + module.removeprefix("flax")


def _needing_an_import(bounds: list[Bound]) -> list[Bound]:
    """Bindings of ``flax``, but those that ``import flax.linen``, which is renamed, serves as well."""
    renamed = [one.statement.col_offset for one in bounds if _imports_linen(one.statement)]
    return [
        one
        for one in bounds
        if _imports_linen(one.statement)
        or not any(outer <= one.statement.col_offset for outer in renamed)
    ]


def _imports_linen(statement: ast.stmt) -> bool:
    names = statement.names if isinstance(statement, ast.Import) else []
    return any(one.asname is None and is_linen(one.name) for one in names)


def _asks_for_linen(node: ast.Call) -> bool:
    """``getattr(flax, "linen")``, ``hasattr`` and ``patch.object`` alike."""
    match node:
        case ast.Call(args=[_, ast.Constant(value="linen"), *_]):
            return True
    return False


def _names_flax(node: ast.AST) -> bool:
    """A string with the name in it: ``__all__``, or a quoted annotation."""
    match node:
        case ast.Constant(value=str() as text):
            return text == "flax" or ("flax." in text and "\n" not in text and not is_linen(text))
    return False


def _binds_our_name(node: ast.AST) -> bool:
    match node:
        case ast.Name(id="nnx_migrate", ctx=ast.Store()) | ast.arg(arg="nnx_migrate"):
            return True
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name == "nnx_migrate"
        case ast.alias(name=module, asname="nnx_migrate"):
            return module != "nnx_migrate"
        case ast.ImportFrom(names=names):
            return any(one.name == "nnx_migrate" and one.asname is None for one in names)
    return False


def _distinct(roots: Iterable[Bound]) -> Iterator[Bound]:
    visited: set[int] = set()
    for one in roots:
        if id(one.statement) not in visited:
            visited.add(id(one.statement))
            yield one
