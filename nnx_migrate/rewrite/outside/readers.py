"""Which module-level code explicit classes read, and which of it nothing else reads.

Code around explicit classes keeps Linen's style. What belongs to the classes alone becomes NNX with them:

    default_norm = partial(nn.LayerNorm, epsilon=1e-6)  # nnx.LayerNorm, if only explicit classes use it
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from nnx_migrate.constructs import is_linen
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import (
    Assignment,
    Definition,
    Import,
    first_name,
    name_parts,
)
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import children, each

_DEPTH = 6  # longest chain of re-exports
_FLAX = ("flax", "nnx_migrate")
_ALL = "*"  # every name of a module
_BY_NAME = (("globals",), ("eval",), ("exec",), ("sys", "modules"))  # reach any name of a module
_IMPORTS = (ast.Import, ast.ImportFrom)
_Statement = tuple[Module, ast.stmt]


def owned_statements(
    project: Project, classes: Iterable[ClassInfo], staying: Iterable[ast.AST] = ()
) -> frozenset[int]:
    """Ids of the top-level statements that these classes read, at any remove, and nothing else does.

    Lazy classes, and the functions in ``staying``, read for themselves.
    """
    skip = frozenset(id(cls.node) for cls in classes)
    apart = frozenset(map(id, (*staying, *(cls.node for cls in project.linen.values()))))
    read = {
        id(one): (module, one)
        for symbol in _read_below(project, classes, skip)
        for module, one in _statements_of(project, symbol)
        if id(one) not in apart
    }
    if not any(is_linen(symbol) for one in read.values() for symbol in _reads(project, *one, skip)):
        return frozenset()
    homes = _homes(read.values())
    owned = set(read)
    others = [
        (module, one)
        for module in project.modules.values()
        for one in module.tree.body
        if id(one) not in owned
    ]
    while others:
        module, statement = others.pop()
        for symbol in _reads(project, module, statement, skip):
            for home, one in homes.get(symbol, ()):
                if id(one) in owned:
                    owned.discard(id(one))
                    others.append((home, one))
    return frozenset(owned)


def _homes(statements: Iterable[_Statement]) -> dict[str, list[_Statement]]:
    """Statements by the names that they bind, and by the module as a whole."""
    found: dict[str, list[_Statement]] = {}
    for module, one in statements:
        for name in (*bound_names(one), _ALL):
            found.setdefault(f"{module.name}.{name}", []).append((module, one))
    return found


def _read_below(
    project: Project, classes: Iterable[ClassInfo], skip: frozenset[int]
) -> frozenset[str]:
    """Every name that the classes read, or that what they read does."""
    found = {symbol for cls in classes for _, symbol in class_loads(project, cls)}
    pending, visited = list(found), set[int]()
    while pending:
        for module, one in _statements_of(project, pending.pop()):
            if id(one) not in visited:
                visited.add(id(one))
                new = _reads(project, module, one, skip) - found
                found |= new
                pending += new
    return frozenset(found)


def _statements_of(project: Project, symbol: str) -> Iterator[_Statement]:
    """The top-level statements that give a name of the project its meaning; imports hand it on."""
    module, rest = project.split(symbol)
    if module is None or not rest:
        return
    yield from ((module, one) for one in _binders(module).get(rest[0], ()))


def _binders(module: Module) -> dict[str, list[ast.stmt]]:
    """The top-level statements, but imports, by the names that they bind; read once."""
    known = module.memo.get(__name__)
    if isinstance(known, dict):
        return known
    found: dict[str, list[ast.stmt]] = {}
    for one in module.tree.body:
        for name in bound_names(one) if not isinstance(one, _IMPORTS) else ():
            found.setdefault(name, []).append(one)
    module.memo[__name__] = found
    return found


def _reads(
    project: Project, module: Module, statement: ast.stmt, skip: frozenset[int]
) -> frozenset[str]:
    """What a statement reads, but inside of the classes in ``skip``; all of a module that it hands on."""
    if id(statement) in skip:
        return frozenset()
    every, classes = _reads_whole(project, module.name, statement)
    return every if classes.isdisjoint(skip) else _reads_but(project, module, statement, skip)


@lru_cache(maxsize=1 << 17)  # every attempt of a run reads every statement of the project
def _reads_whole(
    project: Project, module: str, statement: ast.stmt
) -> tuple[frozenset[str], frozenset[int]]:
    """What a statement reads, and the ids of the classes in it."""
    classes = frozenset(id(one) for one in each(statement, ast.ClassDef))
    return _reads_but(project, project.modules[module], statement, frozenset()), classes


def _reads_but(
    project: Project, module: Module, statement: ast.stmt, skip: frozenset[int]
) -> frozenset[str]:
    found: set[str] = set()
    scope = Scope(module)
    once = {name_parts(node): node for node in _expressions(statement, skip)}
    for parts, node in once.items():
        found.update(_symbols(project, node, scope))
        found.add(f"{project.resolve(node, scope)}.{_ALL}")
        if parts in _BY_NAME:
            found.add(f"{module.name}.{_ALL}")
    return frozenset(found)


def definitions(module: Module, name: str) -> Iterator[ast.AST]:
    """What gives a global its meaning; every statement that stores it when there are several."""
    match module.table[name]:
        case Definition(node=node):
            yield node
        case Assignment(value=value):
            yield value
        case Import():
            yield ast.Name(name, ast.Load())
        case _:
            yield from module.stores.get(name, ())


@lru_cache(maxsize=1 << 13)  # every attempt of a run asks
def class_loads(project: Project, cls: ClassInfo) -> tuple[tuple[str, str], ...]:
    """Project names loaded in a class, each with the first name of the expression that loads it.

    In the order of their last loads; not those that a function of the class hides by a name of its own.
    """
    return _loads(project, cls.node, cls.scope)


def local_loads(cls: ClassInfo) -> set[str]:
    """Names loaded in a class that functions around it bind, or are given."""
    if not cls.scope.tables:
        return set()
    heads = ((first_name(one), around) for one, around in cls.scope.reads(cls.node))
    outer = len(cls.scope.tables)
    return {
        head.id
        for head, around in heads
        if head is not None and 0 < len(around.binder(head.id).tables) <= outer
    }


@lru_cache(maxsize=1 << 13)  # many classes read the same code
def defining_loads(
    project: Project, symbol: str
) -> tuple[tuple[Module, ast.AST, tuple[str, ...]], ...]:
    """What gives a global of the project its meaning, and the project names loaded in it."""
    module, rest = project.split(symbol)
    if module is None or not rest or rest[0] not in module.table:
        return ()
    return tuple(
        (module, node, tuple(name for _, name in _loads(project, node, Scope(module))))
        for node in definitions(module, rest[0])
    )


def _loads(project: Project, node: ast.AST, scope: Scope) -> tuple[tuple[str, str], ...]:
    found = [
        (head.id if (head := first_name(one)) is not None else "", symbol)
        for one, around in scope.reads(node)
        for symbol in _symbols(project, one, around)
    ]
    return tuple(reversed(dict.fromkeys(reversed(found))))


def _expressions(node: ast.AST, skip: Container[int] = ()) -> Iterator[ast.expr]:
    """The names and longest dotted expressions in ``node``, but inside of the nodes in ``skip``."""
    todo = [node]
    while todo:
        one = todo.pop()
        if id(one) in skip:
            continue
        if isinstance(one, ast.Name | ast.Attribute) and name_parts(one):
            yield one
        else:
            todo.extend(children(one))


def _symbols(project: Project, node: ast.expr, scope: Scope) -> Iterator[str]:
    """The project names on the way of a dotted expression, aliases and re-exports included."""
    while True:
        symbol = project.resolve(node, scope)
        if symbol is not None:
            yield symbol
        if not isinstance(node, ast.Attribute):
            break
        owner = project.resolve(node.value, scope)
        if owner is not None:
            yield from _through_imports(project, f"{owner}.{node.attr}")
        node = node.value
    if isinstance(node, ast.Name) and not scope.binder(node.id).tables:
        yield from _through_imports(project, f"{scope.module.name}.{node.id}")


@lru_cache(maxsize=1 << 12)  # every statement reads the same few names
def _through_imports(project: Project, symbol: str) -> tuple[str, ...]:
    """A name, and what it stands for in the modules that it is imported from; each once."""
    found: dict[str, None] = {}
    todo = [symbol]
    while todo:
        one = todo.pop()
        module, rest = project.split(one)
        if one in found or len(rest) > _DEPTH:
            continue
        found[one] = None
        if module is None or not rest:
            continue
        match module.table.get(rest[0]):
            case Import(target=target):
                todo.append(".".join([target, *rest[1:]]))
            case None:
                named, others = _star_sources(project, module.name)
                todo += (".".join([star, *rest]) for star in (*named.get(rest[0], ()), *others))
    return tuple(found)


@lru_cache(maxsize=1 << 12)
def _star_sources(project: Project, name: str) -> tuple[Mapping[str, Sequence[str]], Sequence[str]]:
    """What a module's star imports lead to: by name the modules that bind it, and modules of Flax."""
    named: dict[str, list[str]] = {}
    others: list[str] = []
    for star in project.stars.sources(project.modules[name]):
        source = project.modules.get(star)
        if source is None:  # of other packages only Flax's names matter
            if star.partition(".")[0] in _FLAX:
                others.append(star)
            continue
        for bound in source.table:
            named.setdefault(bound, []).append(star)
    return named, others
