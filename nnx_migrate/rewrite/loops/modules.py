"""Which module an expression builds, and which classes are states of a training loop."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import Recipe
from nnx_migrate.source.names import Assignment, Definition
from nnx_migrate.source.project import Scope
from nnx_migrate.source.walking import given_values, has_starred, walk

LAZY = "flax.linen.lazy"  # also that of `nnx_migrate.linen`
STATE = "flax.training.train_state.TrainState"
_DEPTH = 5


def _recipe(frame: Frame, node: ast.expr, scope: Scope, depth: int) -> Recipe:
    """What a class, or a partial of one, builds modules of."""
    if depth == 0:
        return None
    project = frame.program.project
    if isinstance(node, ast.Call):
        if project.resolve(node.func, scope) != "functools.partial" or not node.args:
            return None
        base = _recipe(frame, node.args[0], scope, depth - 1)
        arguments = node.args[1:]
        return (
            None if base is None else (*base, *_arguments(frame, arguments, node.keywords, scope))
        )
    if isinstance(node, ast.Name):
        match scope.lookup(node.id):
            case Assignment(value=ast.Call() as value):
                return _recipe(frame, value, scope, depth - 1)
            case Definition(node=ast.ClassDef()):
                symbol = project.resolve(node, scope)
                return (symbol,) if symbol is not None else None
    symbol = project.resolve(node, scope)
    if symbol is None:
        return None
    if symbol in project.classes:
        return (symbol,)
    found = project.definition(symbol)
    if found is None or not isinstance(found[1], ast.Call):
        return None
    return _recipe(frame, found[1], Scope(found[0]), depth - 1)


def _arguments(
    frame: Frame, args: Sequence[ast.expr], keywords: Sequence[ast.keyword], scope: Scope
) -> list[str]:
    texts = [f"None={_text(frame, one, scope)}" for one in args]
    return texts + sorted(f"{one.arg or '**'}={_text(frame, one.value, scope)}" for one in keywords)


def _text(frame: Frame, node: ast.expr, scope: Scope) -> str:
    """An argument as text that says what it is everywhere; of local values, this very place."""
    for one in walk(node):
        if isinstance(one, ast.Name):
            symbol = frame.program.project.resolve(one, scope)
            if symbol is None or symbol.startswith("<local>"):
                return f"at {id(node)}"
        elif isinstance(one, ast.Call | ast.Lambda):
            return f"at {id(node)}"
    return ast.dump(node)


def definition_of(frame: Frame, node: ast.Call) -> Recipe:
    """What ``lazy(Class)(...)`` is built of."""
    match node.func:
        case ast.Call(func=function, args=[cls]) if frame.resolve(function) == LAZY:
            base = _recipe(frame, cls, frame.scope, _DEPTH)
            arguments = given_values(node)
            if base is None or has_starred(arguments):
                return None
            return (*base, *_arguments(frame, node.args, node.keywords, frame.scope))
    return None


def call_recipe(frame: Frame, recipe: Recipe, node: ast.Call) -> Recipe:
    """A recipe of which a function with these arguments makes the module."""
    if recipe is None or not any("=at " in one for one in recipe):
        return recipe
    texts = [_text(frame, one, frame.scope) for one in node.args]
    texts += sorted(f"{one.arg}={_text(frame, one.value, frame.scope)}" for one in node.keywords)
    return (*recipe, *texts)


def is_state(frame: Frame, symbol: str) -> bool:
    """Whether a symbol is flax's ``TrainState``, or a class of the project below it."""
    cls = frame.program.project.classes.get(symbol)
    return symbol == STATE or (cls is not None and any(STATE in one.bases for one in cls.mro))


def state_fields(frame: Frame, symbol: str) -> frozenset[str] | None:
    """The fields that such a class adds to flax's ``TrainState``; None: it adds more than fields."""
    if symbol == STATE:
        return frozenset()
    cls = frame.program.project.classes.get(symbol)
    if cls is None or cls.bases != (STATE,) or cls.node.decorator_list or cls.node.keywords:
        return None
    fields: set[str] = set()
    for statement in cls.node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=None | ast.Constant()):
                fields.add(name)
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                continue
            case _:
                return None
    return frozenset(fields)
