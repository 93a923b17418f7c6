"""Statements of the size interpreter, one after the other."""

from __future__ import annotations

import ast
from contextlib import nullcontext
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import (
    NONE,
    ConcatenatedList,
    ExtendedList,
    Record,
    RepeatedItem,
    Sequence,
    Unknown,
    Value,
)
from nnx_migrate.sizes.assignment import assign
from nnx_migrate.sizes.decorators import decorate
from nnx_migrate.sizes.flow import (
    JUMP,
    RAISE,
    RETURN,
    UNLESS_LEFT,
    Rest,
)
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.initial_call import is_constructible
from nnx_migrate.sizes.lists import lose
from nnx_migrate.sizes.narrowing import assume, note_test
from nnx_migrate.sizes.statements.branches import run_branch
from nnx_migrate.sizes.statements.loops import run_loop, run_while
from nnx_migrate.sizes.statements.matching import branches_of
from nnx_migrate.source.bindings import breaks, names_bound_below
from nnx_migrate.source.leaving import raises, returns
from nnx_migrate.source.walking import walk

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def run_block(
    interpreter: Interpreter, body: list[ast.stmt], frame: Frame
) -> tuple[str | None, Rest]:
    """Run a block; what ended it early, or None and the conditions under which its end is met."""
    before, presence = len(interpreter.conditions), interpreter.presence
    try:
        for statement in body:
            interpreter.step()
            flow, rest = _run_one(interpreter, statement, frame)
            if flow is not None:
                return flow, ()
            interpreter.conditions.extend(rest)
        return None, tuple(interpreter.conditions[before:])
    finally:
        del interpreter.conditions[before:]
        interpreter.presence = presence


def _run_one(
    interpreter: Interpreter, statement: ast.stmt, frame: Frame
) -> tuple[str | None, Rest]:
    """Run one statement; conditions are returned when the rest only runs under them."""
    match statement:
        case ast.Expr(value=value):
            interpreter.evaluate(value, frame)
        case ast.Assign(targets=targets, value=value):
            result = interpreter.evaluate(value, frame)
            for target in targets:
                assign(interpreter, target, result, frame)
            note_test(targets, value, frame)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            assign(interpreter, target, interpreter.evaluate(value, frame), frame)
        case ast.AugAssign(target=target, op=op, value=value):
            load = interpreter.plain_sums.get(id(statement))
            if load is None:  # kept, so that no later node gets its id
                load = ast.copy_location(ast.BinOp(_as_load(target), op, value), statement)
                interpreter.plain_sums[id(statement)] = load
            _add_to(interpreter, target, interpreter.evaluate(load, frame), frame)
        case ast.Return(value=value):
            result = interpreter.evaluate(value, frame) if value else NONE
            own = interpreter.conditions[frame.depth :]
            test = own[0] if len(own) == 1 else None
            frame.returns.append((test if is_constructible(interpreter, test) else None, result))
            return RETURN, ()
        case ast.Raise():
            return RAISE, ()
        case ast.Assert(test=test):
            assume(interpreter.project, frame, test, holds=True)
        case ast.Break() | ast.Continue():
            frame.jumps.append(dict(frame.env))
            return JUMP, ()
        case ast.If():
            tests = dict(frame.tests)
            ended = run_branch(interpreter, statement, frame)
            frame.tests = {k: v for k, v in frame.tests.items() if tests.get(k) is v}
            return ended
        case ast.Match() if (branches := branches_of(statement)) is not None:
            return _run_one(interpreter, branches, frame)
        case ast.For():
            flow = run_loop(interpreter, statement, frame)
            return (flow, ()) if flow is not None else _run_else(interpreter, statement, frame)
        case ast.While():
            run_while(interpreter, statement, frame)
            return _run_else(interpreter, statement, frame)
        case ast.With(items=items, body=body):
            for item in items:
                entered = interpreter.evaluate(item.context_expr, frame)
                if item.optional_vars:
                    assign(interpreter, item.optional_vars, entered, frame)
            return run_block(interpreter, body, frame)
        case ast.Try():
            return _run_try(interpreter, statement, frame)
        case ast.FunctionDef():
            frame.env[statement.name] = _closure(interpreter, statement, frame)
        case ast.Delete() | ast.Global() | ast.Nonlocal() | ast.ClassDef() | ast.Match():
            _skip(statement, frame)
            for target in getattr(statement, "targets", []):  # del xs[0]
                lose(target, frame)
            if returns([statement]):  # of a match that is not followed
                return None, (UNLESS_LEFT,)
    return None, ()


def _run_else(
    interpreter: Interpreter, loop: ast.For | ast.While, frame: Frame
) -> tuple[str | None, Rest]:
    """The ``else`` of a loop, which runs unless the loop ends early."""
    left: Rest = (UNLESS_LEFT,) if returns([loop]) else ()
    if not breaks(loop.body):
        with interpreter.under(UNLESS_LEFT) if left else nullcontext():
            ended, rest = run_block(interpreter, loop.orelse, frame)
        return ended, (*left, *rest)
    for one in loop.orelse:
        _skip(one, frame)
    return None, left


def _run_try(interpreter: Interpreter, statement: ast.Try, frame: Frame) -> tuple[str | None, Rest]:
    """Where a handler goes on, it may do so after any part of the body."""
    caught = [one for one in statement.handlers if not isinstance(one.body[-1], ast.Raise)]
    is_open = bool(caught) and raises(statement.body)
    with interpreter.ranks.uncertain():
        with interpreter.under(UNLESS_LEFT) if is_open else nullcontext():
            ended, rest = run_block(interpreter, [*statement.body, *statement.orelse], frame)
        if caught:
            for one in (*statement.body, *statement.orelse, *caught):
                _skip(one, frame)
            ended, rest = None, (UNLESS_LEFT,) if returns([statement]) else ()
        last = run_block(interpreter, statement.finalbody, frame)
    return (ended, rest) if last[0] is None else last


def _skip(part: ast.AST, frame: Frame) -> None:
    """Of what may or may not run here nothing is known afterwards."""
    for node in walk(part):
        match node:
            case ast.Return():
                frame.returns.append(
                    (None, Unknown("returned by a statement that is not followed"))
                )
            case ast.Name(ctx=ast.Load()):
                lose(node, frame)
    for name in names_bound_below(part):
        frame.env[name] = Unknown("bound by a statement that is not followed")


def _add_to(interpreter: Interpreter, target: ast.expr, result: Value, frame: Frame) -> None:
    """``target += value``, which changes a list or dict in place."""
    old = frame.env.get(target.id) if isinstance(target, ast.Name) else None
    lists = Sequence | RepeatedItem | ExtendedList | ConcatenatedList
    if isinstance(target, ast.Name) and isinstance(old, lists | Record):
        frame.change(target.id, result)
    else:
        assign(interpreter, target, result, frame)


def _as_load(target: ast.expr) -> ast.expr:
    copied = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(copied, target)


def _closure(interpreter: Interpreter, node: ast.FunctionDef, frame: Frame) -> Value:
    env = dict(frame.env)
    if frame.instance is not None:
        env["__instance__"] = frame.instance
    function = Function(node, frame.scope, env, None, frame.defined_in, frame)
    return decorate(interpreter, function, node.decorator_list, frame)
