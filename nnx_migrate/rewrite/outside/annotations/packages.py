"""Packages that check, convert or dispatch by annotations, and whose annotations they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from nnx_migrate.constructs.common.base import Context
from nnx_migrate.rewrite.outside.annotations.reader import Reader, reader, with_named
from nnx_migrate.rewrite.outside.annotations.referents import Referents, Statement
from nnx_migrate.rewrite.outside.annotations.uses import Anything
from nnx_migrate.source.names import last_name, name_parts
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import callee_of, each, given_values

_PACKAGES = frozenset(
    {
        *("beartype", "cattrs", "chz", "dacite", "dataclasses_json", "draccus", "injector"),
        *("jsonargparse", "mashumaro", "msgspec", "multipledispatch", "ovld", "plum", "pydantic"),
        *("pyrallis", "runtype", "serde", "simple_parsing", "typeguard", "tyro"),
    }
)
_PARTS = frozenset({"transformers.HfArgumentParser"})  # of packages that do not otherwise
# Which argument such a call reads, where that is one: its position and its name.
_READ = {
    "cattrs.structure": (1, "cl"),
    "dacite.from_dict": (0, "data_class"),
    "tyro.cli": (0, "f"),
}
# What makes a package read all annotations of whole modules, those of local variables included.
_HOOKS = frozenset(
    {"beartype_all", "beartype_package", "beartype_packages", "beartype_this_package"}
    | {"beartyping", "claw", "install_import_hook"}
)
# Settings: what has one reads nothing.
_SETTINGS = frozenset({"BeartypeConf", "Config", "ConfigDict", "Field", "PrivateAttr"})
_IMPORTS = frozenset({"__import__", "import_module", "importorskip"})
_CHECKS = frozenset({"isinstance", "issubclass"})


@lru_cache(maxsize=2)
def sees_locals(project: Project) -> bool:
    """Whether code may be instrumented, and so the annotations of local variables be seen."""
    words = (*_HOOKS, "typeguard")
    return any(word in module.text for module in project.modules.values() for word in words)


@lru_cache(maxsize=2)
def uses_packages(project: Project) -> bool:
    """Whether a file imports one."""
    return any(_words(one) for one in project.modules.values())


def package_readers(project: Project, referents: Referents) -> Iterator[Reader]:
    """What the packages read."""
    for module in project.modules.values():
        for what in _of_anything(module):
            yield reader(referents, module, what, None)
    yield from _Search(project, referents).readers()


def _is_of_package(name: str | None) -> bool:
    return name is not None and (name.partition(".")[0] in _PACKAGES or name in _PARTS)


def _of_anything(module: Module) -> Iterator[str]:
    """Hooks, and what no name in the file shows."""
    for node in module.nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _HOOKS:
                yield name
            case ast.Import(names=names):
                yield from (one.name for one in names if _HOOKS & {*one.name.split(".")})
            case ast.ImportFrom(module=str(name), names=names, level=0):
                words = {*name.split("."), *(one.name for one in names)}
                if _HOOKS & words or ("*" in words and _is_of_package(name)):
                    yield name
            case ast.Call(func=called, args=[ast.Constant(value=str() as name), *_]):
                if last_name(called) in _IMPORTS and _is_of_package(name):
                    yield name


def _words(module: Module) -> set[str]:
    """The names that a file imports from the packages."""
    found: set[str] = set()
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found |= {
                one.asname or one.name.partition(".")[0]
                for one in node.names
                if _is_of_package(one.name)
            }
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {
                one.asname or one.name
                for one in node.names
                if _is_of_package(f"{node.module}.{one.name}")
            }
    return found | {last for last in map(_last, _PARTS) if last in module.by_word}


def _last(symbol: str) -> str:
    return symbol.rpartition(".")[2]


class _Search:
    def __init__(self, project: Project, referents: Referents) -> None:
        self.project = project
        self.referents = referents
        self.seen: set[int] = set()

    def readers(self) -> Iterator[Reader]:
        for word in sorted(self._every_word()):
            for module in self.project.modules.values():
                for node in module.by_word.get(word, ()):
                    whole = _whole(module, node)
                    symbol = self._symbol(module, whole)
                    if symbol is not None:
                        yield from self._used(module, whole, symbol)

    def _every_word(self) -> set[str]:
        """All names under which files have something of the packages."""
        modules = self.project.modules.values()
        found = {word for module in modules for word in _words(module)}
        size = 0
        while size != len(found):
            size = len(found)
            for node in (node for module in modules for node in module.nodes):
                match node:
                    case ast.ImportFrom(names=names):
                        found |= {one.asname for one in names if one.asname and one.name in found}
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        if last_name(value) in found:
                            found.add(name)
        return found

    def _symbol(self, module: Module, node: ast.expr) -> str | None:
        """What of the packages an expression is."""
        place = self.referents.uses.place(module, node)
        meanings = self.project.meanings(node, place.scope)
        if place.context is Context.ANNOTATION:
            return None
        return next((one for one in meanings if _is_of_package(one)), None)

    def _used(self, module: Module, node: ast.expr, symbol: str) -> Iterator[Reader]:
        """What the use of a package's name, or of what a package made, may read."""
        if id(node) in self.seen or last_name(node).startswith("__"):
            return
        self.seen.add(id(node))
        decorated = _decorator_target(module, node)
        if decorated is not None:
            yield from self._decorates(module, decorated, node, symbol)
            return
        parent = module.parents.of(node)
        match parent:
            case ast.ClassDef():
                yield self._of(module, symbol, parent)
            case ast.keyword() if isinstance(above := module.parents.of(parent), ast.ClassDef):
                yield self._of(module, symbol, above)
            case ast.Call(func=called) if called is node:
                yield from self._of_call(module, parent, symbol)
            case ast.Call(func=ast.Name(id=name)) if name in _CHECKS:
                return
            case ast.Expr() | ast.ExceptHandler() | ast.Raise() | ast.Compare():
                return
            case ast.Subscript(value=owner) if owner is node:
                yield from self._used(module, parent, symbol)
            case ast.Assign(targets=[ast.Name(id=name)]) if not _is_member(module, parent):
                if name_parts(node) is None:  # a generic class, given types
                    for home, one in self._results(module, parent, name):
                        yield from self._used(home, _whole(home, one), symbol)
                elif self._symbol(module, node) is None:
                    yield reader(self.referents, module, symbol, None)
            case _:
                yield reader(self.referents, module, symbol, None)

    def _of(self, module: Module, symbol: str, node: ast.AST) -> Reader:
        """A reader of a definition, and of the classes below it."""
        cls = self.project.by_node.get(id(node))
        found = [id(one.node) for one in self.referents.uses.below(cls)] if cls is not None else []
        reason = f"{module.name} reads annotations, with {symbol}"
        return Reader(reason, with_named(self.referents, {id(node), *found}))

    def _decorates(
        self, module: Module, node: Statement, use: ast.expr, symbol: str
    ) -> Iterator[Reader]:
        """What decorates a function, whose attributes may then take others: ``@name.dispatch``."""
        for call in (one for one in module.parents.above(use) if isinstance(one, ast.Call)):
            owner = self.referents.uses.symbol(module, call.func)
            is_ours = owner is None or self.project.split(owner)[0] is not None
            if is_ours and use is not call.func:  # nobody knows what it does with it
                yield reader(self.referents, module, symbol, None)
        above = [use, *module.parents.above(use)]
        first = next(i for i, one in enumerate(node.decorator_list) if one in above)
        try:
            found = {*self.referents.of_decorators(module, node, node.decorator_list[first + 1 :])}
        except Anything:
            yield reader(self.referents, module, symbol, None)
            return
        yield self._of(module, symbol, node)
        reason = f"{module.name} reads annotations, with {symbol}"
        yield Reader(reason, with_named(self.referents, found))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for home, one in self._attributes(module, node):
                yield from self._used(home, one, symbol)

    def _attributes(
        self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> Iterator[tuple[Module, ast.expr]]:
        """Attributes of a function."""
        is_global = isinstance(self.referents.uses.place(module, node).frame, ast.Module)
        symbol = f"{module.name}.{node.name}"
        every = (
            self.referents.uses.mentions(symbol)
            if is_global
            else (
                (home, one)
                for home in self.project.modules.values()
                for one in home.by_word.get(node.name, ())
            )
        )
        for home, one in every:
            whole = _whole(home, one)
            if whole is not one:
                yield home, whole

    def _of_call(self, module: Module, call: ast.Call, symbol: str) -> Iterator[Reader]:
        """A call reads what it is given, and its result may read what that is given."""
        if last_name(call.func) in _SETTINGS:
            return
        yield reader(self.referents, module, symbol, *self._arguments(module, call, symbol))
        parent = module.parents.of(call)
        if isinstance(parent, ast.Call) and parent.func is call:
            yield from self._of_call(module, parent, symbol)
            return
        if isinstance(parent, ast.Attribute):
            yield from self._used(module, _whole(module, call), symbol)
            return
        if isinstance(parent, ast.Expr) or not _is_open(call):
            return
        if not isinstance(parent, ast.Assign) or _is_member(module, parent):
            yield reader(self.referents, module, symbol, None)
            return
        match parent.targets:
            case [ast.Name(id=name)]:
                for home, one in self._results(module, parent, name):
                    yield from self._used(home, _whole(home, one), symbol)
            case _:
                yield reader(self.referents, module, symbol, None)

    def _results(
        self, module: Module, node: ast.Assign, name: str
    ) -> Iterator[tuple[Module, ast.expr]]:
        """Where a name is read that holds a result."""
        around = module.parents.function(node)
        if around is None:
            yield from self.referents.uses.mentions(f"{module.name}.{name}")
            return
        for one in each(around, ast.Name):
            if one.id == name and isinstance(one.ctx, ast.Load):
                yield module, one

    def _arguments(self, module: Module, call: ast.Call, symbol: str) -> Iterator[ast.expr | None]:
        """The arguments that may be read; those of the package itself read on their own."""
        every: Sequence[ast.expr] = given_values(call)
        if symbol in _READ and name_parts(call.func) is not None:
            position, name = _READ[symbol]
            every = [*call.args[position : position + 1]]
            every += [one.value for one in call.keywords if one.arg == name]
            if len(every) != 1:
                yield None
                return
        if any(one.arg is None for one in call.keywords):
            yield None
        for one in every:
            called = callee_of(one)
            if name_parts(called) is None or self._symbol(module, called) is None:
                yield one


def _is_open(call: ast.Call) -> bool:
    """Whether what a call gives may read more: an object, or a decorator with settings."""
    name = last_name(call.func)
    return name[:1].isupper() or not call.args or name_parts(call.func) is None


def _is_member(module: Module, statement: ast.AST) -> bool:
    return isinstance(module.parents.of(statement), ast.ClassDef)


def _whole(module: Module, node: ast.expr) -> ast.expr:
    """The longest dotted expression that begins with one."""
    while isinstance(above := module.parents.of(node), ast.Attribute):
        node = above
    return node


def _decorator_target(module: Module, node: ast.AST) -> Statement | None:
    """What an expression decorates, or helps to."""
    while isinstance(node, ast.expr | ast.keyword):
        above = module.parents.of(node)
        if isinstance(above, Statement) and node in above.decorator_list:
            return above
        if above is None:
            return None
        node = above
    return None
