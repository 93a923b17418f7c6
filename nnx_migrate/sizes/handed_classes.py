"""Classes of modules that are handed to code which may call them: ``map(nn.Dense, widths)``.

NNX's constructors need sizes and streams, which a call that nobody sees here does not give them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import (
    Argument,
    Array,
    Library,
    Record,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.unknown_builders import builds_modules, is_plain
from nnx_migrate.source.project import Project

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

# What is handed on here is not called: it is lifted, wrapped, looked at or cast.
_CALLS_NOTHING = (
    *("flax.linen.", "inspect.", "dataclasses.", "typing.", "logging.", "functools.partial"),
    *("functools.wraps", "functools.update_wrapper", "functools.cache", "functools.lru_cache"),
    *("jax.jit", "jax.checkpoint", "jax.remat", "builtins."),
)
_CALLS = ("builtins.map", "builtins.filter", "builtins.iter")


def check_class_arguments(
    interpreter: Interpreter,
    callee: Value,
    arguments: Iterable[Value],
    node: ast.Call,
    frame: Frame,
) -> None:
    """Refuse a call of what is not followed that is given a class of modules, or a partial of one.

    Args:
      callee: the function, or the value whose method is called.
    """
    if frame.instance is not interpreter.root and frame.instance is not None:
        return  # it is another class's submodule
    if any(_holds(interpreter.project, one) for one in arguments) and _may_call(callee, node):
        own = frame.scope.module is interpreter.root.info.module
        place = node if own else interpreter.root.info.node
        reason = f"{ast.unparse(node.func)} may build a submodule of a class that it is given"
        interpreter.refuse(place, reason, is_final=True)


def _holds(project: Project, value: Value) -> bool:
    """Whether it is such a class, or a list or dict of such."""
    match value:
        case Sequence(items=items):
            return any(_holds(project, one) for one in items)
        case Record(entries=entries):
            return any(_holds(project, one) for one in entries.values())
    return builds_modules(project, value)


def _may_call(callee: Value, node: ast.Call) -> bool:
    match callee:
        case Library(symbol=symbol):
            followed = layer_of(symbol) is not None or symbol.startswith("<")
            keeps = symbol.startswith(_CALLS_NOTHING) and symbol not in _CALLS
            return not (followed or keeps)
        case Unknown() | Static() | Argument() | Array():
            return not (isinstance(node.func, ast.Attribute) and is_plain(node.func.attr))
    return False
