"""State that ``setup`` changes: Linen runs ``setup`` before every call, NNX its ``__init__`` once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import receiver_of, self_call
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import walk

RULE = "setup"
_CHANGES = frozenset({"put_variable", "sow"})


def check_every_call(cls: ClassInfo) -> None:
    """Refuse what changes variables in ``setup``, or in methods that it calls.

    Raises:
      Refused: something does, other than under ``if self.is_initializing():``.
    """
    for method in _run_by_setup(cls):
        for node in _unguarded(method, receiver_of(method)):
            if _changes(node, receiver_of(method)):
                raise Refused(
                    node,
                    "setup changes a variable here, which Linen does before every call",
                    "change it in the method that is called, or under `if self.is_initializing():`",
                    RULE,
                )


def _changes(node: ast.AST, receiver: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in _CHANGES
        case ast.Attribute(value=ast.Name(id=name), attr="value", ctx=ast.Store()):
            return name != receiver  # an attribute of that name is no variable
        case ast.Attribute(attr="value", ctx=ast.Store()):
            return True
    return False


def _run_by_setup(cls: ClassInfo) -> list[ast.FunctionDef]:
    methods = {name: one for owner in reversed(cls.mro) for name, one in owner.methods.items()}
    found: list[ast.FunctionDef] = [methods["setup"]] if "setup" in methods else []
    for method in found:  # grows while it is read
        for node in walk(method):
            called = methods.get(self_call(node, receiver_of(method)) or "")
            if called is not None and called not in found:
                found.append(called)
    return found


def _unguarded(node: ast.AST, receiver: str) -> Iterator[ast.AST]:
    """The nodes that run outside of the initial call, too."""
    yield node
    for child in ast.iter_child_nodes(node):
        guarded = isinstance(node, ast.If) and child in node.body
        if not (guarded and self_call(node.test, receiver) == "is_initializing"):  # type: ignore[attr-defined]
            yield from _unguarded(child, receiver)
