"""Which class an expression names, and which of its members are free of modules.

A class inside of it, a class method or a static method that has to do with no module is the same in
both forms: code goes on to take it of the class itself.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache

from nnx_migrate.constructs import is_linen
from nnx_migrate.sizes.carry_cells import carry_cells
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import Definition, parameter_names, positional_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.string_names import string_names
from nnx_migrate.source.walking import each, walk

_OF_CLASSES = frozenset({"classmethod", "staticmethod"})
_OWNER = frozenset({"super", "__class__"})
_NAMES = frozenset({"__name__", "__qualname__"})


def class_named(project: Project, node: ast.AST, scope: Scope) -> ClassInfo | None:
    """The Linen class of the project that an expression names, not through an alias."""
    if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return None
    if isinstance(node, ast.Name) and id(node) not in scope.module.comprehension_variables:
        match scope.lookup(node.id):
            case Definition(node=ast.ClassDef() as statement):
                return project.by_node.get(id(statement))
    symbol = project.resolve(node, scope)
    if symbol is None and isinstance(node, ast.Attribute):
        return _of_self(project, node, scope)
    if symbol not in project.linen or project.is_alias(node, scope):
        return None
    return project.linen[symbol]


def _of_self(project: Project, node: ast.Attribute, scope: Scope) -> ClassInfo | None:
    """The class ``Net`` of ``self.Net`` that stands in the class around, and that nothing binds anew."""
    if not isinstance(node.value, ast.Name):
        return None
    name, parents = node.value.id, scope.module.parents
    for function in parents.functions(node):
        if name not in parameter_names(function):
            continue
        owner = project.by_node.get(id(parents.of(function)))
        if owner is None or owner.linen or not isinstance(function, ast.FunctionDef):
            return None
        if name != parameter_names(function)[0] or not _is_kept(function, name):
            return None
        if "staticmethod" in project.decorators(owner, function):
            return None
        return _inner_classes(project, owner).get(node.attr)
    return None


def _is_kept(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function never binds its parameter again."""
    return all(isinstance(one.ctx, ast.Load) for one in each(function, ast.Name) if one.id == name)


@lru_cache(maxsize=1024)  # every attempt of a run asks
def _inner_classes(project: Project, owner: ClassInfo) -> Mapping[str, ClassInfo]:
    """Linen classes that are attributes of all instances of a class, by their names."""
    found: dict[str, ClassInfo] = {}
    for name in {one.name for one in owner.node.body if isinstance(one, ast.ClassDef)}:
        member = _member(owner, name)
        inner = project.by_node.get(id(member[1])) if member is not None else None
        below = (one for one in project.classes.values() if owner in one.mro and one is not owner)
        if inner is None or not inner.linen or inner.is_ambiguous or _is_set(project, name):
            continue
        if not any(name in bound_names(one) for cls in below for one in cls.node.body):
            found[name] = inner
    return found


def _is_set(project: Project, name: str) -> bool:
    """Whether code sets an attribute of that name, or writes the name as a string."""
    uses = (one for module in project.modules.values() for one in module.by_word.get(name, ()))
    is_stored = any(
        isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Load) for one in uses
    )
    return is_stored or name in string_names(project)


def is_module(symbol: str) -> bool:
    """Whether a name of Linen's is a class of modules, by Python's spelling of classes."""
    return is_linen(symbol) and symbol.rpartition(".")[2].lstrip("_")[:1].isupper()


@lru_cache(maxsize=1024)  # every attempt of a run asks
def is_free(project: Project, cls: ClassInfo, name: str) -> bool:
    """Whether ``Class.name`` has to do with no module: a class inside, a class or static method.

    It may use others of its kind, and names of classes; all else that it does with a class of
    modules, its own or another, is not known to be the same in both forms.
    """
    return _is_free(project, cls, name, set())


def _is_free(project: Project, cls: ClassInfo, name: str, visited: set[tuple[str, str]]) -> bool:
    if (cls.name, name) in visited:
        return True
    visited.add((cls.name, name))
    match _member(cls, name):
        case (owner, ast.ClassDef() as inner):
            nested = project.by_node.get(id(inner))
            if nested is None or nested.linen:
                return False
            return _are_free(project, walk(inner), owner.scope, {}, visited)
        case (owner, ast.FunctionDef() as method):
            kinds = _OF_CLASSES.intersection(project.decorators(owner, method))
            nodes = _run(method)
            if not kinds or any(getattr(one, "id", "") in _OWNER for one in nodes):
                return False
            cells = {id(one.cell.func) for one in carry_cells(method).values()}
            nodes = [one for one in nodes if id(one) not in cells]  # both forms ask a class for it
            names = positional_names(method.args)
            own = {name: cls for name in names[:1] if "classmethod" in kinds}
            return _are_free(project, nodes, owner.scope.enter(method), own, visited)
    return False


def _member(cls: ClassInfo, name: str) -> tuple[ClassInfo, ast.stmt] | None:
    """The statement that gives a class an attribute, and the class in whose body it stands."""
    for owner in cls.mro:
        found = [one for one in owner.node.body if name in bound_names(one)]
        if found:
            return owner, found[-1]
    return None


def _run(method: ast.FunctionDef) -> Sequence[ast.AST]:
    """What a method evaluates: its defaults, and its body when it is called."""
    defaults = (*method.args.defaults, *(one for one in method.args.kw_defaults if one))
    return [one for part in (*method.body, *defaults) for one in walk(part)]


def _are_free(
    project: Project,
    nodes: Sequence[ast.AST],
    scope: Scope,
    own: Mapping[str, ClassInfo],
    visited: set[tuple[str, str]],
) -> bool:
    """Whether code does nothing with classes of modules but read names and free members.

    Args:
      own: names that stand for a class besides those of ``scope``.
    """
    read = {id(one.value): one.attr for one in nodes if isinstance(one, ast.Attribute)}
    for node in nodes:
        named = own.get(node.id) if isinstance(node, ast.Name) else None
        named = named or class_named(project, node, scope)
        if named is None or not named.linen:
            if _is_of_modules(project, node, scope):
                return False
            continue
        word = read.get(id(node), "")
        if word not in _NAMES and not _is_free(project, named, word, visited):
            return False
    return True


def _is_of_modules(project: Project, node: ast.AST, scope: Scope) -> bool:
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    symbol = project.resolve(node, scope)
    return symbol is not None and (symbol in project.linen or is_module(symbol))
