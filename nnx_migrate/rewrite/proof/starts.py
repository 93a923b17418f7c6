"""What code says around ``init`` where it says by which method variables are made."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.proof.graph import loaded_word
from nnx_migrate.rewrite.proof.reading import words_of
from nnx_migrate.rewrite.proof.unbound import is_special
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, walk

_STARTS = frozenset({"init", "init_with_output", "lazy_init", "tabulate"})


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
            calls = _starts(project, module, nodes)
            if calls:
                found.update(word for node in nodes for word in words_of(node))
            functions |= {name for call in calls for name in _method_receivers(module, call)}
    pending, visited = set(functions), set[int]()
    while pending:
        more: set[str] = set()
        for module, node in _loads(project, pending):
            more |= _other_names(module, node)
            around = _expression(module, node)
            if id(around) not in visited:
                visited.add(id(around))
                nodes = walk(around)
                found.update(word for one in nodes for word in words_of(one))
                receivers = (
                    _method_receivers(module, one) for one in nodes if isinstance(one, ast.Call)
                )
                more |= set[str]().union(*receivers)
        pending = more - functions
        functions |= pending
    return frozenset(found)


def _loads(
    project: Project, names: Collection[str]
) -> Iterator[tuple[Module, ast.Name | ast.Attribute]]:
    """The places that read one of the names."""
    for module in project.modules.values():
        for node in (one for name in names for one in module.by_word.get(name, ())):
            if loaded_word(node) in names:
                yield module, node


def _method_receivers(module: Module, call: ast.Call) -> set[str]:
    """The functions around a call that are given what says the method of it."""
    values = [one.value for one in call.keywords if one.arg in ("method", None)]
    names = {one.id for value in values for one in each(value, ast.Name)}
    return _named_around(module, call) if names and names - _functions(module) else set()


@lru_cache(maxsize=256)
def _functions(module: Module) -> frozenset[str]:
    return frozenset(one.name for one in module.nodes if isinstance(one, ast.FunctionDef))


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
    references = [one for one in nodes if _is_init(one) and id(one) not in called]
    # ``jax.jit(net.init)``
    above = {id(one) for node in references for one in module.parents.above(node)}
    around = above | set(map(id, references))
    names = {  # ``start = jax.jit(net.init)``
        name
        for one in nodes
        if isinstance(one, ast.Assign) and id(one.value) in around
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
