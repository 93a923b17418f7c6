"""The statements of a function, one after the other: what its names hold, and what becomes of each."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from nnx_migrate.rewrite.loops.binding import bind, bind_targets
from nnx_migrate.rewrite.loops.compiling import read_decorators
from nnx_migrate.rewrite.loops.expressions import plain, used, value
from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    Function,
    Kind,
    Many,
    State,
    flows_of,
    holds_updates,
    is_special,
)
from nnx_migrate.rewrite.loops.making import before, is_dropped, is_update, of_one_call
from nnx_migrate.rewrite.loops.plan import NewModel, Statement, Tree
from nnx_migrate.rewrite.loops.returns import read_return


def read_block(frame: Frame, body: Sequence[ast.stmt]) -> None:
    """Read statements in their order."""
    for one in body:
        frame.updates, frame.top = [], None
        _statement(frame, one)
        frame.left_stale |= frame.stale


def _statement(frame: Frame, node: ast.stmt) -> None:
    match node:
        case ast.Assign(targets=[target], value=given_value):
            _assign(frame, node, target, given_value)
        case ast.AnnAssign(target=target, value=ast.expr() as given_value):
            _assign(frame, node, target, given_value)
        case ast.Return():
            read_return(frame, node)
        case ast.Expr(value=given_value):
            _expression(frame, node, given_value)
        case ast.If(test=test, body=body, orelse=orelse):
            used(frame, test, value(frame, test))
            _branches(frame, [body, orelse])
        case ast.For(target=target, iter=over, body=body, orelse=orelse):
            used(frame, over, value(frame, over))
            _loop(frame, target, body)
            read_block(frame, orelse)
        case ast.While(test=test, body=body, orelse=orelse):
            used(frame, test, value(frame, test))
            _loop(frame, None, body)
            used(frame, test, value(frame, test))
            read_block(frame, orelse)
        case ast.With(items=items, body=body):
            for item in items:
                used(frame, item.context_expr, value(frame, item.context_expr))
                if item.optional_vars is not None:
                    _store(frame, item.optional_vars)
            read_block(frame, body)
        case ast.Try() | ast.TryStar():
            _try(frame, node)
        case ast.Match(subject=subject, cases=cases):
            used(frame, subject, value(frame, subject))
            for case in cases:
                _pattern(frame, case)
            _branches(frame, [*(case.body for case in cases), []])
        case ast.FunctionDef():
            _define(frame, node)
        case ast.Continue() | ast.Break():
            frame.jumps.append(frame.copy())
        case ast.Import() | ast.ImportFrom() | ast.Pass():
            pass
        case ast.ClassDef() | ast.AsyncFunctionDef():
            _opaque_definition(frame, node)
        case ast.Delete(targets=targets):
            for one in targets:
                if isinstance(one, ast.Name) and is_special(frame.names.get(one.id, PLAIN)):
                    frame.problem(one, f"{one.id} is deleted")
            _other(frame, node)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            frame.outer_names |= set(names)
        case _:
            _other(frame, node)


def _other(frame: Frame, node: ast.AST) -> None:
    """A statement that knows nothing of flows."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            used(frame, child, value(frame, child))
        elif isinstance(child, ast.stmt):
            read_block(frame, [child])
        else:
            _other(frame, child)
    bind_targets(frame, node)


def _opaque_definition(frame: Frame, node: ast.ClassDef | ast.AsyncFunctionDef) -> None:
    """A class or coroutine: its methods are read by themselves, nothing else may see a flow."""
    bodies = [one for method in _functions(node) for one in method.body]
    inside = {id(one) for statement in bodies for one in ast.walk(statement)}
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and id(one) not in inside:
            kind = frame.look_up(one)
            if is_special(kind):
                frame.problem(one, f"{one.id} is used in {node.name}")


def _functions(node: ast.ClassDef | ast.AsyncFunctionDef) -> list[ast.FunctionDef]:
    body = node.body if isinstance(node, ast.ClassDef) else []
    return [one for one in body if isinstance(one, ast.FunctionDef)]


def _pattern(frame: Frame, case: ast.match_case) -> None:
    for one in ast.walk(case.pattern):
        name = getattr(one, "rest" if isinstance(one, ast.MatchMapping) else "name", None)
        if name is not None:
            frame.bind_plainly(one, name)
    plain(frame, case.pattern)
    if case.guard is not None:
        used(frame, case.guard, value(frame, case.guard))


def _try(frame: Frame, node: ast.Try | ast.TryStar) -> None:
    start = frame.copy()
    aged, frame.aged = frame.aged, set()
    read_block(frame, [*node.body, *node.orelse])
    after = frame.copy()
    for handler in node.handlers:
        frame.restore(start)
        frame.join(after)
        for name, kind in frame.names.items():  # it may come between an update and its name
            if any(one.key in frame.aged for one in flows_of(kind)):
                frame.stale.add(name)
        if handler.name is not None:
            frame.bind_plainly(handler, handler.name)
        read_block(frame, handler.body)
        if not _ends(handler.body):
            frame.join(after)
            after = frame.copy()
    frame.restore(after)
    frame.aged |= aged
    read_block(frame, node.finalbody)


def _store(frame: Frame, target: ast.expr) -> None:
    for one in ast.walk(target):
        if isinstance(one, ast.Name):
            frame.bind(one.id, PLAIN)


def _assign(frame: Frame, node: ast.stmt, target: ast.expr, source: ast.expr) -> None:
    frame.top = source
    kind = value(frame, source)
    if not is_special(kind):
        _hold(frame, target, source, kind)
        return
    if isinstance(source, ast.Tuple):
        _assign_tuple(frame, node, target, source, kind)
        return
    kind, lines = before(frame, source, of_one_call(frame, source, kind, target), target)
    parts = bind(frame, target, kind)
    if parts == [target] and not lines:
        return
    built = any(isinstance(one, NewModel) for one in lines)
    stays = isinstance(source, ast.Call) and not built and not is_dropped(frame, source)
    if isinstance(node, ast.AnnAssign) and parts:
        frame.problem(node, "an annotated name holds part of the state")
    frame.change(
        node,
        Statement(tuple(lines), parts[0] if len(parts) == 1 else tuple(parts) or None, source)
        if stays or parts
        else Statement(tuple(lines)),
    )


def _assign_tuple(
    frame: Frame, node: ast.stmt, target: ast.expr, sources: ast.Tuple, kind: Kind
) -> None:
    """``a, b = x, y``: of each value what its name becomes, and none that is the module's already."""
    targets = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    if not isinstance(kind, Many) or len(targets) != len(sources.elts):
        frame.problem(target, "a tuple with part of the state in it has a name")
        return
    places: list[Tree] = []
    values: list[Tree] = []
    for one, source, item in zip(targets, sources.elts, kind.items, strict=True):
        if is_special(item) and isinstance(source, ast.Call) and is_dropped(frame, source):
            frame.problem(source, "a state is made beside another value")
        parts = bind(frame, one, item) if is_special(item) else [one]
        if not is_special(item):
            _hold(frame, one, source, item)
        if parts or isinstance(source, ast.Call):
            places.append(parts[0] if len(parts) == 1 else tuple(parts))
            values.append(source)
    if places == targets:
        return
    if () in places:
        frame.problem(node, "a call that gives nothing back stands beside other values")
    both = [one[0] if len(one) == 1 else tuple(one) for one in (places, values) if one]
    frame.change(node, Statement((), both[0], both[1]) if both else Statement())


def _hold(frame: Frame, target: ast.expr, source: ast.expr, kind: Kind) -> None:
    """Let a target hold what is nothing of a flow."""
    match target, kind:
        case ast.Name(id=name), _:
            frame.bind(name, kind)
        case ast.Tuple(elts=elements), Many(items=items) if len(elements) == len(items):
            for one, item in zip(elements, items, strict=True):
                _hold(frame, one, source, item)
        case ((ast.Tuple() | ast.List()), _):
            frame.escape(source, kind)
            _store(frame, target)
        case _:
            frame.escape(source, kind)
            _other(frame, target)


def _expression(frame: Frame, node: ast.Expr, source: ast.expr) -> None:
    frame.top = source
    kind = value(frame, source)
    if is_update(source) and isinstance(kind, State):
        frame.problem(node, "the new state is given no name")
        return
    if isinstance(source, ast.Call) and not holds_updates(kind):
        return  # nobody has what the call gives back
    used(frame, source, kind)


def _branches(frame: Frame, bodies: Sequence[Sequence[ast.stmt]]) -> None:
    start = frame.copy()
    after = None
    for body in bodies:
        frame.restore(start)
        read_block(frame, body)
        if after is not None and not _ends(body):
            frame.join(after)
        elif after is not None:
            frame.restore(after)
        if not _ends(body) or after is not None:
            after = frame.copy()
    if after is None:
        frame.restore(start)


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing runs after these statements."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def _loop(frame: Frame, target: ast.expr | None, body: Sequence[ast.stmt]) -> None:
    outer, frame.jumps = frame.jumps, []
    for _ in range(2):  # the second round begins as the first one ends
        start = frame.copy()
        if target is not None:
            _store(frame, target)
        read_block(frame, body)
        for one in (start, *frame.jumps):
            frame.join(one)
    frame.jumps = outer


def _define(frame: Frame, node: ast.FunctionDef) -> None:
    frame.inner.append(node)
    spec = node.args
    defaults = (*spec.defaults, *(one for one in spec.kw_defaults if one is not None))
    for one in (*node.decorator_list, *defaults):
        used(frame, one, value(frame, one))
    if read_decorators(frame, node):
        frame.program.compiled_functions.add(id(node))
        frame.bind(node.name, Function(id(node), is_compiled=True))
    else:
        frame.bind(node.name, Function(id(node)))
