"""Where the code of a project mentions a module-level function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from operator import itemgetter

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.growth import grown
from nnx_migrate.source.names import Definition, Import, imported_names
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, walk


@dataclass(frozen=True)
class Mention:
    """One load of a name: where it stands, and the call whose function it is.

    ``function`` is the method of ``cls``, or the module-level function, that holds it; None for
    code that runs with the class or module.
    """

    cls: ClassInfo | None
    function: ast.FunctionDef | None
    scope: Scope
    node: ast.expr
    call: ast.Call | None = None


def mentions_of(project: Project, symbol: str) -> Iterator[Mention]:
    """Every load of the name of a function or class, under whatever name an import gives it."""
    names = _names_of(project, symbol.rpartition(".")[2].partition(":")[0])
    for module in project.modules.values():
        if any(name in module.text for name in names):
            for one in _loads(project, module, names):
                if project.resolve(one.node, one.scope) == symbol:
                    yield one


def imports_of(project: Project, module: Module, symbol: str) -> Iterator[ast.alias]:
    """The names of a module's ``from ... import`` statements that lead to a function."""
    for node in each(module.tree, ast.ImportFrom):
        bindings = imported_names(node, module.package)
        for alias, (bound, target) in zip(node.names, bindings, strict=True):
            if module.table.get(bound) == Import(target) and project.canonical(target) == symbol:
                yield alias


def is_defined_once(module: Module, node: ast.FunctionDef) -> bool:
    """Whether a module gives the name of a function to nothing else."""
    binding = module.table.get(node.name)
    same = [one for one in statements_in(module.tree.body) if _binds(one, node.name)]
    return isinstance(binding, Definition) and binding.node is node and len(same) == 1


def statements_in(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module that run with it, those under conditions too."""
    for one in body:
        yield one
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for attribute in ("body", "orelse", "finalbody"):
                yield from statements_in(getattr(one, attribute, []))
            for handler in getattr(one, "handlers", []):
                yield from statements_in(handler.body)


def _binds(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return statement.name == name
        case ast.Assign(targets=targets):
            return any(getattr(n, "id", None) == name for one in targets for n in walk(one))
        case ast.AnnAssign(target=ast.Name(id=bound)) | ast.AugAssign(target=ast.Name(id=bound)):
            return bound == name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return any((one.asname or one.name) == name for one in names)
        case _:
            return False


def _names_of(project: Project, name: str) -> frozenset[str]:
    """The name and every alias that imports in the project give it, one after another."""
    renamings = _renamings(project)
    return grown([name], lambda known: (new for old, new in renamings if old in known))


@lru_cache(maxsize=2)  # every function of a project asks
def _renamings(project: Project) -> frozenset[tuple[str, str]]:
    """``(name, alias)`` of every ``from ... import name as alias`` of a project."""
    return frozenset(
        (alias.name, alias.asname)
        for module in project.modules.values()
        if " as " in module.text
        for one in each(module.tree, ast.ImportFrom)
        for alias in one.names
        if alias.asname
    )


def _loads(project: Project, module: Module, names: frozenset[str]) -> Iterator[Mention]:
    """Loads in a module whose last part is one of ``names``."""
    known = _loads_of(project, module)
    found = sorted((place for name in names for place in known.get(name, ())), key=itemgetter(0))
    return (mention for _, mention in found)


@lru_cache(maxsize=1 << 12)  # every function of a project asks
def _loads_of(project: Project, module: Module) -> dict[str, list[tuple[int, Mention]]]:
    """Every load in a module by its last part, numbered."""
    found: dict[str, list[tuple[int, Mention]]] = {}
    number = count()
    todo: list[tuple[ast.AST, Mention]] = [
        (module.tree, Mention(None, None, Scope(module), ast.Name(module.name)))
    ]
    while todo:
        node, around = todo.pop()
        inside = _inside(project, node, around)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name | ast.Attribute) and isinstance(child.ctx, ast.Load):
                last = child.attr if isinstance(child, ast.Attribute) else child.id
                call = node if isinstance(node, ast.Call) and node.func is child else None
                mention = Mention(inside.cls, inside.function, inside.scope, child, call)
                found.setdefault(last, []).append((next(number), mention))
            todo.append((child, inside))
    return found


def _inside(project: Project, node: ast.AST, around: Mention) -> Mention:
    """What is around the children of ``node``."""
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return around
    cls, function, scope = around.cls, around.function, around.scope
    if isinstance(node, ast.ClassDef):
        found = project.by_node.get(id(node))
        if found is not None and found.linen:
            cls, function = found, None
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        scope = scope.enter(node)
        if function is None and isinstance(node, ast.FunctionDef):
            function = node
    return Mention(cls, function, scope, around.node)
