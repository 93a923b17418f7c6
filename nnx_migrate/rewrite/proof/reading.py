"""Code around the classes of a project that they read, at any remove."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.outside.readers import class_loads, defining_loads, local_loads
from nnx_migrate.rewrite.proof.graph import loaded_word
from nnx_migrate.rewrite.proof.unbound import is_special
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, walk


def read_by(
    project: Project, classes: Iterable[ClassInfo], texts: Mapping[str, str]
) -> Iterator[tuple[str, Module, ast.AST]]:
    """Each class with the definitions of globals that it reads, other classes of modules aside.

    ``texts``: the new texts, by path; what a class no longer names there it does not read.
    """
    for cls in classes:
        seen: set[str] = set()
        names = _names(texts, cls)
        read = class_loads(project, cls)
        pending = [symbol for head, symbol in read if names is None or head in names]
        while pending:
            symbol = pending.pop()
            if symbol in seen or symbol in project.linen:
                continue
            seen.add(symbol)
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
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in next((one[name] for one in binders if name in one), ()):
            yield node
            pending += sorted({one.id for one in each(node, ast.Name)})


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
    """The plain names in the new text of a class; None where there is none."""
    text = texts.get(cls.module.path)
    if text is None:
        return None
    return {one.id for node in named_classes(text, cls) for one in each(node, ast.Name)}


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


# Words that code says of models: what asks for more than their methods, what stands around ``init``.

# What asks a model for more than its methods.
_INSIDE = frozenset({"capture_intermediates", "intercept_methods", "module_paths"})
_STARTS = frozenset({"init", "init_with_output", "lazy_init", "tabulate"})


def said(node: ast.AST) -> Iterator[str]:
    """Attributes, keywords and one-word strings."""
    match node:
        case ast.Attribute(attr=word) | ast.keyword(arg=str() as word):
            yield word
        case ast.Constant(value=str() as word) if word.isidentifier():
            yield word


@lru_cache(maxsize=1)  # every attempt of a run asks
def asking_inside(project: Project) -> Mapping[str, list[tuple[ast.AST, str]]]:
    """By module, the nodes that ask a model for more than its methods, and the words they do it by."""
    found: dict[str, list[tuple[ast.AST, str]]] = {}
    for module in project.modules.values():
        for node in module.nodes:
            word = next((one for one in said(node) if one in _INSIDE), None)
            if word is not None:
                found.setdefault(module.name, []).append((node, word))
    return found


@lru_cache(maxsize=1)  # every attempt of a run asks
def said_around_starts(project: Project) -> frozenset[str]:
    """What is said in top-level statements that call ``init`` and say which method makes variables.

    A function that is handed the method (``def start(model, x, **options)``) is said it where it is named.
    """
    found: set[str] = set()
    functions: set[str] = set()
    for module in project.modules.values():
        for statement in module.tree.body:
            nodes = walk(statement)
            for call in _starts(project, module, nodes):
                found.update(word for node in nodes for word in said(node))
                functions |= _handed(module, call)
    pending = set(functions)
    while pending:
        more: set[str] = set()
        for module in project.modules.values():
            if pending.isdisjoint(module.by_word):
                continue
            for node in (one for name in pending for one in module.by_word.get(name, ())):
                if loaded_word(node) in pending:
                    around = _expression(module, node)
                    found.update(word for one in walk(around) for word in said(one))
                    more |= _other_names(module, node)
                    calls = (one for one in walk(around) if isinstance(one, ast.Call))
                    more |= {name for one in calls for name in _handed(module, one)}
        pending = more - functions
        functions |= pending
    return frozenset(found)


def _handed(module: Module, call: ast.Call) -> set[str]:
    """The functions around a call that are given what says the method of it."""
    values = [one.value for one in call.keywords if one.arg in ("method", None)]
    names = {one.id for value in values for one in each(value, ast.Name)}
    defined = {one.name for one in module.nodes if isinstance(one, ast.FunctionDef)}
    return _named_around(module, call) if names - defined else set()


def _named_around(module: Module, node: ast.AST) -> set[str]:
    """What calls the functions around a node: their names, or that of their class."""
    names = {one.name for one in module.parents.functions(node) if isinstance(one, ast.FunctionDef)}
    around = module.parents.class_of(node)
    made = {around.name} if around is not None and "__init__" in names else set()
    return {one for one in names - _STARTS if not is_special(one)} | made


def _other_names(module: Module, node: ast.Name | ast.Attribute) -> set[str]:
    """What else a function is called that is named and not called: ``begin = jax.jit(start)``."""
    above = [node, *module.parents.above(node)]
    match module.parents.of(node), next((one for one in above if isinstance(one, ast.stmt)), None):
        case ast.Call(func=called), _ if called is node:
            return set()
        case _, ast.Assign(targets=targets):
            return {name for one in targets for name in bound_names(one)}
    return set()


def _expression(module: Module, node: ast.AST) -> ast.AST:
    """The whole expression that a node is a part of."""
    above = module.parents.of(node)
    while isinstance(above, ast.expr | ast.keyword | ast.comprehension):
        node, above = above, module.parents.of(above)
    return node


def _starts(project: Project, module: Module, nodes: Sequence[ast.AST]) -> list[ast.Call]:
    """The calls that make variables by another method than ``__call__``."""
    calls = [one for one in nodes if isinstance(one, ast.Call)]
    called = {id(one.func) for one in calls}
    handed = [one for one in nodes if _is_init(one) and id(one) not in called]
    above = {
        id(one) for node in handed for one in module.parents.above(node)
    }  # ``jax.jit(net.init)``
    names = {  # ``start = jax.jit(net.init)``
        name
        for one in nodes
        if isinstance(one, ast.Assign) and id(one.value) in above | set(map(id, handed))
        for target in one.targets
        for name in bound_names(target)
    } | _STARTS
    return [one for one in calls if _is_start(project, module, one) or _says(one, names, above)]


def _says(call: ast.Call, names: Collection[str], above: Collection[int]) -> bool:
    """Whether a call of what became of an ``init`` says the method."""
    return any(one.arg == "method" for one in call.keywords) and (
        id(call.func) in above or (isinstance(call.func, ast.Name) and call.func.id in names)
    )


def _is_init(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _STARTS


def _is_package(project: Project, module: Module, node: ast.expr) -> bool:
    """Whether a dotted name is of another package than Linen: ``wandb.init``."""
    symbol = project.resolve(node, Scope(module))
    if symbol is None or is_linen(symbol):
        return False
    return symbol.partition(".")[0] not in {one.partition(".")[0] for one in project.modules}


def _is_start(project: Project, module: Module, call: ast.Call) -> bool:
    if any(map(_is_init, (call.func, *call.args[:1]))):
        if any(one.arg in ("method", None) for one in call.keywords):
            return not (_is_init(call.func) and _is_package(project, module, call.func))
        return is_linen(project.resolve(call.func, Scope(module)))
    symbol = project.resolve(call.func, Scope(module)) if isinstance(call.func, ast.Name) else None
    return is_linen(symbol) and (symbol or "").rpartition(".")[2] in _STARTS
