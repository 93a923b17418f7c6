"""Functions inside a function that see its names as they are when they run, not when they are written.

An earlier state that still has its name is the module as it is now: whoever reads it later reads the
later state. Where a function runs is known if it is called by its name, right there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import PLAIN, is_special
from nnx_migrate.source.names import parameter_names
from nnx_migrate.source.walking import each, names_read, walk

GRADIENTS = {"jax.grad": "nnx.grad", "jax.value_and_grad": "nnx.value_and_grad"}
_Closure = ast.FunctionDef | ast.Lambda | ast.GeneratorExp
# These call what they are given, and drop it.
_AT_ONCE = ("jax.tree.", "jax.tree_util.", "jax.lax.")


def check_captures(frame: Frame) -> None:
    """Note functions that may read an earlier state when there is a later one."""
    old = {name for name in frame.left_stale if is_special(frame.kinds.get(name, PLAIN))}
    if not old:
        return
    inner = {id(one) for one in frame.inner}
    for one in _closures(frame.node):
        read = sorted(old & _reads(one))
        if read and not (_runs_here(frame, one) if id(one) in inner else runs_at_once(frame, one)):
            frame.problem(one, f"{read[0]} is read here, maybe after a later state was made of it")


def _closures(node: ast.AST) -> Iterator[ast.AST]:
    """Functions right inside, not those inside these."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Closure):
            yield child
        else:
            yield from _closures(child)


def _reads(node: ast.AST) -> set[str]:
    own = parameter_names(node) if isinstance(node, ast.FunctionDef | ast.Lambda) else ()
    return names_read(node) - {*own}


def _runs_here(frame: Frame, node: ast.AST) -> bool:
    """Whether a definition is called by its name in its own function alone: each call is checked."""
    assert isinstance(node, ast.FunctionDef)
    later = (one for one in _closures(frame.node) if not runs_at_once(frame, one))
    inside = {id(one) for closure in later for one in walk(closure)}
    for one in each(frame.node, ast.Name):
        if one.id != node.name or isinstance(one.ctx, ast.Store):
            continue
        if id(one) in inside or not _is_called(frame, one):
            return False
    return not node.decorator_list


def _is_called(frame: Frame, name: ast.Name) -> bool:
    match frame.scope.module.parents.of(name):
        case ast.Call(func=function) if function is name:
            return True
        case ast.Call(func=function, args=[first, *_]) if first is name:
            return frame.resolve(function) in GRADIENTS
    return False


def runs_at_once(frame: Frame, node: ast.AST) -> bool:
    """``jax.tree.map(lambda ...)``, ``jax.grad(lambda ...)(x)``, ``sum(... for ...)``."""
    call = frame.scope.module.parents.of(node)
    if not isinstance(call, ast.Call):
        return False
    if isinstance(node, ast.GeneratorExp):
        return True
    symbol = frame.resolve(call.func)
    if symbol.startswith(_AT_ONCE):
        return True
    around = frame.scope.module.parents.of(call)
    return symbol in GRADIENTS and isinstance(around, ast.Call) and around.func is call
