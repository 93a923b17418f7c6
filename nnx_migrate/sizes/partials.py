"""Lambdas that stand for ``functools.partial`` of a module class.

``lambda: Mixer(heads=4)`` and ``lambda **fields: nn.Dense(3, **fields)`` build what
``partial(Mixer, heads=4)`` and ``partial(nn.Dense, 3)`` build, under whichever module calls them. They
count as such where evaluating the arguments at once is the same as evaluating them at the call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from nnx_migrate.sizes.return_values import is_module_class
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

_PLACEMENT = frozenset({"name", "parent"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ONCE = (*_COMPREHENSIONS, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)
_PURE = frozenset(
    "abs bool dict float int len list max min range round sorted str sum tuple".split()  # noqa: SIM905
)
_Parents = Mapping[ast.AST, ast.AST]


@lru_cache(maxsize=2)  # every attempt of a run asks for those of the same project
def partial_lambdas(project: Project) -> Mapping[int, ast.Call]:
    """The constructor calls of such lambdas, by ``id`` of the lambda."""
    found: dict[int, ast.Call] = {}
    for cls in project.linen.values():
        for statement in cls.node.body:
            if isinstance(statement, ast.FunctionDef):
                found.update(_in_method(project, cls.scope.enter(statement), statement))
            elif isinstance(statement, ast.AnnAssign | ast.Assign):
                found.update(_in_default(project, cls.scope, statement))
    return found


def _in_default(project: Project, scope: Scope, statement: ast.stmt) -> Iterator[_Found]:
    for node in walk(statement):
        if isinstance(node, ast.Lambda) and (call := _constructor(project, scope, node)):
            yield id(node), call


_Found = tuple[int, ast.Call]


def _in_method(project: Project, scope: Scope, method: ast.FunctionDef) -> Iterator[_Found]:
    """Those of one method, functions inside it left out."""
    parents = {child: node for node in walk(method) for child in ast.iter_child_nodes(node)}
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in walk(method):
        if not isinstance(node, ast.Lambda):
            continue
        around = list(_above(node, parents, method))
        if any(isinstance(one, functions) for one in around):
            continue
        call = _constructor(project, scope, node)
        if call and (_is_used_at_once(node, parents) or _is_settled(call, method, around)):
            yield id(node), call


def _above(node: ast.AST, parents: _Parents, top: ast.AST) -> Iterator[ast.AST]:
    while (node := parents[node]) is not top:
        yield node


def _constructor(project: Project, scope: Scope, node: ast.Lambda) -> ast.Call | None:
    """The constructor call that is all a lambda does, if it hands its keywords on and no more."""
    spec, call = node.args, node.body
    if spec.posonlyargs or spec.args or spec.vararg or spec.kwonlyargs:
        return None
    if not isinstance(call, ast.Call) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    inside = scope.enter(node)
    if not is_module_class(project, project.resolve(call.func, inside)):
        return None
    spread = [one.value for one in call.keywords if one.arg is None]
    names = [one.id for one in spread if isinstance(one, ast.Name)]
    handed = [spec.kwarg.arg] if spec.kwarg else []
    if len(names) != len(spread) or names != handed:
        return None
    if any(one.arg in _PLACEMENT for one in call.keywords):
        return None
    return call if _is_same_at_once(project, inside, call, handed) else None


def _is_same_at_once(project: Project, scope: Scope, call: ast.Call, handed: list[str]) -> bool:
    """Whether the arguments build nothing, change nothing and read the lambda's own names nowhere."""
    values = [*call.args, *(one.value for one in call.keywords if one.arg is not None)]
    for node in (inner for value in values for inner in walk(value)):
        if isinstance(node, _ONCE) or (isinstance(node, ast.Name) and node.id in handed):
            return False
        if isinstance(node, ast.Call) and not _is_repeatable(project, scope, node.func):
            return False
    return True


def _is_repeatable(project: Project, scope: Scope, function: ast.expr) -> bool:
    """Whether calling it builds no submodule and gives the same whenever it is called."""
    symbol = project.resolve(function, scope)
    if symbol is None:
        name = function.id if isinstance(function, ast.Name) else ""
        return name in _PURE and scope.lookup(name) is None
    return not is_module_class(project, symbol) and not symbol.startswith("<local>")


def _is_used_at_once(node: ast.AST, parents: _Parents) -> bool:
    """Whether it is an argument, at any depth, of what is called right after: ``Block(f)(x)``."""
    while True:
        parent = parents[node]
        if isinstance(parent, ast.keyword):
            node, parent = parent, parents[parent]
        if not isinstance(parent, ast.Call):
            return False
        if parent.func is node:
            return True
        node = parent


def _is_settled(call: ast.Call, method: ast.FunctionDef, around: Iterable[ast.AST]) -> bool:
    """Whether every local that the arguments read is bound once, and in no loop."""
    if any(isinstance(one, _COMPREHENSIONS) for one in around):
        return False
    read = {one.id for one in walk(call) if isinstance(one, ast.Name)}
    loops = [node for node in walk(method) if isinstance(node, _LOOPS)]
    repeated = {id(inner) for loop in loops for inner in walk(loop)}
    bound = [
        node
        for node in walk(method)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in read
    ]
    names = [node.id for node in bound]
    parameters = {one.arg for one in walk(method.args) if isinstance(one, ast.arg)}
    if any(id(node) in repeated for node in bound) or len(set(names)) != len(names):
        return False
    return not parameters & set(names)
