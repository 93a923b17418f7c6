"""Which locals a piece of code changes in place: lists, dicts, sets, and iterators by ``next``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.walking import walk

# Methods of lists, dicts, sets, deques, queues and NumPy's arrays that change them.
CHANGING = frozenset(
    "append extend insert remove pop clear sort reverse update setdefault popitem add discard"  # noqa: SIM905
    " __setitem__ __delitem__ __setattr__ __delattr__ appendleft extendleft popleft rotate move_to_end"
    " intersection_update difference_update symmetric_difference_update __next__"
    " fill put resize partition".split()
)
# Functions of ``operator`` that change their first argument.
CHANGING_OPERATORS = frozenset({"delitem", "iadd", "iconcat", "imul", "ior", "setitem"})
# Statements that a compact method keeps or drops whole; how often their bodies run is not followed.
WHOLE = ast.While | ast.Try | ast.Match | ast.AsyncFor | ast.AsyncWith


def changed_names(part: ast.AST) -> frozenset[str]:
    """Locals whose objects ``part`` changes in place, functions inside it included."""
    return frozenset(name for node in walk(part) for name in changed_at(node))


def changed_at(node: ast.AST) -> Iterator[str]:
    """Locals whose objects a node changes in place by itself, whatever stands inside it."""
    match node:
        case ast.Call():
            yield from changed_by_call(node)
        case (
            ast.Subscript(value=value, ctx=ast.Store() | ast.Del())
            | ast.Attribute(value=value, ctx=ast.Store() | ast.Del())
        ):
            yield from holders(value, whole=False)


def changed_by_call(call: ast.Call) -> Iterator[str]:
    """Locals that ``ws.append(3)`` or ``next(ws)`` changes."""
    match call:
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in CHANGING:
            yield from holders(value, whole=False)
        case ast.Call(func=ast.Name(id="next" | "setattr" | "delattr"), args=[value, *_]):
            yield from holders(value, whole=False)


def given_to(names: Iterable[str], call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """What a call gives for parameters, as far as it says so: by place or by name."""
    yield from zip(names, call.args, strict=False)
    yield from ((one.arg, one.value) for one in call.keywords if one.arg is not None)


def holders(value: ast.expr, *, whole: bool) -> Iterator[str]:
    """Locals that ``value`` may be, or, unless ``whole``, may be a part of."""
    match value:
        case ast.Name(id=name) if name != "self":
            yield name
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) if not whole:
            yield from holders(inner, whole=whole)
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*holders(body, whole=whole), *holders(orelse, whole=whole))
        case ast.BoolOp(values=values):
            for one in values:
                yield from holders(one, whole=whole)
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Dict(values=values) if not whole:
            for one in values:
                yield from holders(one, whole=whole)
        case ast.Starred(value=inner) if not whole:
            yield from holders(inner, whole=whole)


def open_change(statement: ast.AST) -> ast.Call | None:
    """The call of ``ws.append(3)`` and ``w = ws.pop()``: changes that a statement makes openly."""
    match statement:
        case (
            ast.Expr(value=ast.Call() as call)
            | ast.Assign(value=ast.Call() as call)
            | ast.AnnAssign(value=ast.Call() as call)
        ) if any(changed_by_call(call)):
            return call
    return None


def hidden_changes(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Locals that an expression changes on the way, with the place: ``f(ws.pop())``, ``if ws.pop():``."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.If(test=head, body=inner, orelse=orelse):
                yield from (*_implicit_changes(head), *hidden_changes([*inner, *orelse]))
            case ast.For(iter=head, body=inner, orelse=orelse):
                yield from (*_implicit_changes(head), *hidden_changes([*inner, *orelse]))
            case ast.With(items=managers, body=inner):
                for one in managers:
                    yield from _implicit_changes(one)
                yield from hidden_changes(inner)
            case _ if not isinstance(statement, WHOLE):
                yield from _implicit_changes(statement, but=open_change(statement))


def _implicit_changes(part: ast.AST, but: ast.Call | None = None) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(part, FunctionNode):
        return
    if isinstance(part, ast.Call) and part is not but:
        for name in changed_by_call(part):
            yield name, part
    for child in ast.iter_child_nodes(part):
        yield from _implicit_changes(child, but)
