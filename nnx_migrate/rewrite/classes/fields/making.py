"""Default factories that make the same whenever they run.

Linen runs the factory of a field once, where the module is made. An explicit class runs it in ``__init__``, which
the lazy form calls in ``init`` and in each ``apply``: ``lambda: next(counter)`` would give each another value.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from nnx_migrate.source.classes import Field
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

_BUILTINS = frozenset(
    [
        "abs",
        "bool",
        "bytes",
        "complex",
        "dict",
        "enumerate",
        "float",
        "frozenset",
        "int",
        "len",
        "list",
        "max",
        "min",
        "range",
        "reversed",
        "round",
        "set",
        "sorted",
        "str",
        "sum",
        "tuple",
        "zip",
    ]
)
# Libraries of which everything that has a value, and no state, is the same at each call.
_LIBRARIES = ("jax.", "flax.", "numpy.", "math.", "operator.", "optax.", "copy.", "ml_collections.")
_FUNCTIONS = frozenset({"functools.partial", "collections.OrderedDict"})
_WITH_STATE = ("numpy.random.", "flax.nnx.Rngs")
_PARTIAL = "functools.partial"
_MAKERS = frozenset({"__init__", "__new__", "__post_init__"})
_DEPTH = 4


def makes_the_same(project: Project, one: Field, factory: ast.expr) -> bool:
    """Whether each call of the factory plainly makes what the others make."""
    return _is_steady(project, one.owner.scope, factory, _DEPTH)


def factory_value(factory: ast.expr) -> ast.expr | None:
    """What a factory makes that is a number, text or tuple of them, so that it can be a default itself.

    ``field(default_factory=lambda: (3, 4))`` is a default of ``(3, 4)``.
    """
    match factory:
        case ast.Lambda(args=ast.arguments(args=[], kwonlyargs=[]), body=body) if _is_literal(body):
            return body
    return None


def _is_literal(value: ast.expr) -> bool:
    match value:
        case ast.Constant():
            return True
        case ast.Tuple(elts=items):
            return all(map(_is_literal, items))
        case ast.UnaryOp(operand=operand):
            return _is_literal(operand)
    return False


def _is_steady(project: Project, scope: Scope, factory: ast.expr, depth: int) -> bool:
    """Whether calls of a function do nothing but make equal values."""
    match factory:
        case _ if depth == 0:
            return False
        case ast.Lambda(body=body):
            return _is_plain(project, scope, body, depth)
        case ast.Call(func=func, args=[made, *args], keywords=keywords) if (
            project.resolve(func, scope) == _PARTIAL
        ):
            values = [*args, *(one.value for one in keywords)]
            return _is_steady(project, scope, made, depth) and all(
                _is_plain(project, scope, one, depth) for one in values
            )
        case ast.Name() | ast.Attribute():
            return _is_steady_name(project, scope, factory, depth)
    return False


def _is_steady_name(
    project: Project, scope: Scope, named: ast.Name | ast.Attribute, depth: int
) -> bool:
    symbol = project.resolve(named, scope)
    if symbol is None:
        is_builtin = isinstance(named, ast.Name) and scope.lookup(named.id) is None
        return is_builtin and ast.unparse(named) in _BUILTINS
    found = project.definition(symbol)
    if found is None:
        known = symbol in _FUNCTIONS or symbol.startswith(_LIBRARIES)
        return known and not symbol.startswith(_WITH_STATE)
    module, node = found
    match node:
        case ast.FunctionDef(body=body, decorator_list=[]):
            return _only_returns(project, Scope(module), body, depth - 1)
        case ast.ClassDef():
            return _is_steady_class(project, Scope(module), node, depth - 1)
        case ast.expr():
            return _is_steady(project, Scope(module), node, depth - 1)
    return False


def _only_returns(project: Project, scope: Scope, body: Sequence[ast.stmt], depth: int) -> bool:
    match body:
        case [ast.Expr(value=ast.Constant()), *rest] if rest:
            return _only_returns(project, scope, rest, depth)
        case [ast.Return(value=ast.expr() as value)]:
            return _is_plain(project, scope, value, depth)
    return False


def _is_steady_class(project: Project, scope: Scope, node: ast.ClassDef, depth: int) -> bool:
    """Whether a class has no code that runs where one is made, but factories of such values."""
    if any(isinstance(one, ast.FunctionDef) and one.name in _MAKERS for one in node.body):
        return False
    if node.keywords or not all(_is_steady_base(project, scope, one, depth) for one in node.bases):
        return False
    factories = (
        one.value
        for part in node.body
        for one in walk(part)
        if isinstance(one, ast.keyword) and one.arg == "default_factory"
    )
    return all(_is_steady(project, scope, one, depth) for one in factories)


def _is_steady_base(project: Project, scope: Scope, base: ast.expr, depth: int) -> bool:
    if project.resolve(base, scope) == "typing.NamedTuple":
        return True
    return isinstance(base, ast.Name | ast.Attribute) and _is_steady_name(
        project, scope, base, depth
    )


def _is_plain(project: Project, scope: Scope, value: ast.expr, depth: int) -> bool:
    """Whether an expression calls only functions whose calls make the same."""
    todo: list[ast.AST] = [value]
    while todo:
        node = todo.pop()
        match node:
            case ast.Lambda():
                continue  # what it does, it does where it is called
            case ast.NamedExpr() | ast.Await() | ast.Yield() | ast.YieldFrom():
                return False
            case ast.Call(func=ast.Attribute(value=ast.expr() as content)) if _is_new(content):
                pass  # a method of what is made here: ``np.eye(3).reshape(-1)``
            case ast.Call(func=func) if not _is_steady(project, scope, func, depth):
                return False
        todo += ast.iter_child_nodes(node)
    return True


def _is_new(value: ast.expr) -> bool:
    """Whether an expression makes an object that nothing else holds."""
    made = ast.Call | ast.Constant | ast.JoinedStr | ast.Dict | ast.List | ast.Set | ast.Tuple
    return isinstance(value, made)
