"""Code around the classes of a project that they read, at any remove."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from nnx_migrate.rewrite.outside.readers import class_loads, defining_loads, local_loads
from nnx_migrate.sizes.factory_calls import FactoryFunction
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode, last_name
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each, names_in, runtime_nodes, walk


def read_by(
    project: Project,
    classes: Iterable[ClassInfo],
    texts: Mapping[str, str],
    builders: Mapping[str, FactoryFunction],
) -> Iterator[tuple[str, Module, ast.AST]]:
    """Each class with the definitions of globals that it reads, other classes of modules aside.

    Args:
      texts: the new texts, by path; what a class no longer names there it does not read.
      builders: functions, by name, whose users may read them: what these build they only call.
    """
    for cls in classes:
        visited: set[str] = set()
        names = _names(texts, cls)
        read = class_loads(project, cls)
        pending = [symbol for head, symbol in read if names is None or head in names]
        while pending:
            symbol = pending.pop()
            if symbol in visited or symbol in project.linen:
                continue
            if symbol in builders and cls.name in builders[symbol].users:
                continue
            visited.add(symbol)
            for module, node, loaded in defining_loads(project, symbol):
                if id(node) in project.by_node and project.by_node[id(node)].linen:
                    continue
                yield cls.name, module, node
                pending += loaded
        yield from ((cls.name, cls.module, node) for node in _locals_read(cls, names))


def _locals_read(cls: ClassInfo, names: set[str] | None) -> Iterator[ast.AST]:
    """What gives the locals of the functions around a class their meaning, where it reads them.

    ``norm`` of ``def make(): norm = partial(nn.LayerNorm); class Net(nn.Module): ...norm()...``.

    Args:
      names: those that its new text has; None where all count.
    """
    loads = local_loads(cls)
    pending = sorted(loads if names is None else loads & names)
    around = cls.module.parents.functions(cls.node) if pending else ()
    binders = [_binders(cls.module, one) for one in around]
    visited: set[str] = set()
    while pending:
        name = pending.pop()
        if name in visited:
            continue
        visited.add(name)
        for node in next((one[name] for one in binders if name in one), ()):
            yield node
            pending += sorted(names_in(node))


def _binders(module: Module, function: FunctionNode) -> dict[str, list[ast.AST]]:
    """What the names of a function itself are bound to, statement by statement; classes to nothing."""
    found: dict[str, list[ast.AST]] = {}
    for one in walk(function):
        if isinstance(one, ast.stmt) and module.parents.function(one) is function:
            if isinstance(one, ast.ClassDef):
                found.setdefault(one.name, [])
            for names, value in _bindings(one):
                for name in bound_names(names):
                    found.setdefault(name, []).append(value)
    return found


def _bindings(statement: ast.stmt) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What binds names in a statement itself, and what they are bound to."""
    match statement:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.FunctionDef():
            yield statement, statement
        case ast.For(target=target, iter=value):
            yield target, value
        case ast.With(items=items):
            yield from ((one.optional_vars, one.context_expr) for one in items if one.optional_vars)


def _names(texts: Mapping[str, str], cls: ClassInfo) -> set[str] | None:
    """The plain names that the new text of a class evaluates, annotations aside; None where there is none."""
    text = texts.get(cls.module.path)
    if text is None:
        return None
    nodes = (one for node in named_classes(text, cls) for one in runtime_nodes(node))
    return {one.id for one in nodes if isinstance(one, ast.Name)}


def named_classes(text: str, cls: ClassInfo) -> list[ast.ClassDef]:
    """The classes of a class's name in the new text of its file."""
    return _classes(text).get(cls.node.name, [])


@lru_cache(maxsize=64)
def _classes(text: str) -> dict[str, list[ast.ClassDef]]:
    found: dict[str, list[ast.ClassDef]] = {}
    for node in walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            found.setdefault(node.name, []).append(node)
    return found


# Words by which code asks a model for more than its methods.

_TAKING = frozenset({"__getattribute__", "attrgetter", "methodcaller", "vars"})
_INSIDE = frozenset({"capture_intermediates", "intercept_methods", "module_paths"})


def words_of(node: ast.AST) -> Iterator[str]:
    """Attributes, keywords and one-word strings."""
    match node:
        case ast.Attribute(attr=word) | ast.keyword(arg=str() as word):
            yield word
        case ast.Constant(value=str() as word) if word.isidentifier():
            yield word


@lru_cache(maxsize=1024)  # every attempt of a run asks
def keys_of_data(tree: ast.AST) -> frozenset[int]:
    """Ids of strings that are keys alone, and name no method: ``return loss, {"loss": loss}``.

    Of code that takes a member by a computed name (``getattr(head, key)``, ``method=key``) there are none.
    """
    for call in each(tree, ast.Call):
        named = [one.value for one in call.keywords if one.arg in ("method", None)]
        called = last_name(call.func)
        named += call.args[1:2] if called == "getattr" else []
        if called in _TAKING or any(not isinstance(one, ast.Constant) for one in named):
            return frozenset()
    keys = [key for one in each(tree, ast.Dict) for key in one.keys if key is not None]
    keys += [one.slice for one in each(tree, ast.Subscript)]
    return frozenset(map(id, keys))


@lru_cache(maxsize=1)  # every attempt of a run asks
def asking_inside(project: Project) -> Mapping[str, list[tuple[ast.AST, str]]]:
    """By module, the nodes that ask a model for more than its methods, and the words they do it by."""
    found: dict[str, list[tuple[ast.AST, str]]] = {}
    for module in project.modules.values():
        for node in module.nodes:
            word = next((one for one in words_of(node) if one in _INSIDE), None)
            if word is not None:
                found.setdefault(module.name, []).append((node, word))
    return found
