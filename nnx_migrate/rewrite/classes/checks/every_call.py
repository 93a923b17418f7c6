"""State that ``setup`` changes or asks for: Linen runs it before every call, NNX its ``__init__`` once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import receiver_of, self_call
from nnx_migrate.rewrite.classes.reading.questions import QUESTIONS
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, walk

RULE = "setup"
_CHANGES = frozenset({"put_variable", "sow"})
_ASKS = QUESTIONS | {"perturb"}
_MAKES = frozenset({"param", "variable"})


def check_every_call(cls: ClassInfo) -> None:
    """Refuse what changes variables in ``setup`` or asks for them, or does so in methods that it calls.

    Raises:
      Refused: something does, other than under ``if self.is_initializing():``.
    """
    for method in run_by_setup(cls):
        receiver = receiver_of(method)
        for node in _later_nodes(method, receiver):
            if _changes(node, receiver):
                raise ClassRefused(
                    node,
                    "setup changes a variable here, which Linen does before every call",
                    "change it in the method that is called, or under `if self.is_initializing():`",
                    RULE,
                )
        for node in _asking(method, receiver):
            raise ClassRefused(
                node,
                "setup asks here what each call answers anew, and __init__ runs once",
                "ask in the method that is called",
                RULE,
            )


def _asking(node: ast.AST, receiver: str) -> Iterator[ast.AST]:
    """Questions whose answer may be kept, or decide what is."""
    if isinstance(node, ast.Attribute) and node.attr in _ASKS:
        yield node
    if isinstance(node, ast.Assert) or self_call(node, receiver) in _MAKES:
        return  # first values are made in ``init`` alone
    skipped = node.test if isinstance(node, ast.If) and _is_update(node, receiver) else None
    for child in ast.iter_child_nodes(node):
        if child is not skipped:
            yield from _asking(child, receiver)


def _is_update(node: ast.If, receiver: str) -> bool:
    """Whether it is ``if self.is_initializing():`` above nothing that an attribute or a name keeps."""
    if self_call(node.test, receiver) != "is_initializing" or node.orelse:
        return False
    calls = {one.func.id for one in each(node, ast.Call) if isinstance(one.func, ast.Name)}
    targets = [one for one in walk(node) if isinstance(getattr(one, "ctx", None), ast.Store)]
    return "setattr" not in calls and all(_changes(one, receiver) for one in targets)


def _changes(node: ast.AST, receiver: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in _CHANGES
        case ast.Attribute(value=ast.Name(id=name), attr="value", ctx=ast.Store()):
            return name != receiver  # an attribute of that name is no variable
        case ast.Attribute(attr="value", ctx=ast.Store()):
            return True
    return False


def run_by_setup(cls: ClassInfo) -> list[ast.FunctionDef]:
    """The methods that run before every call, ``setup`` first."""
    methods = {name: one for owner in reversed(cls.mro) for name, one in owner.methods.items()}
    found: list[ast.FunctionDef] = [methods["setup"]] if "setup" in methods else []
    for method in found:  # grows while it is read
        for node in walk(method):
            called = methods.get(self_call(node, receiver_of(method)) or "")
            if called is not None and called not in found:
                found.append(called)
    return found


def _later_nodes(node: ast.AST, receiver: str) -> Iterator[ast.AST]:
    """The nodes that run outside of the initial call, too."""
    yield node
    for child in ast.iter_child_nodes(node):
        guarded = isinstance(node, ast.If) and child in node.body
        if not (guarded and self_call(node.test, receiver) == "is_initializing"):  # type: ignore[attr-defined]
            yield from _later_nodes(child, receiver)
