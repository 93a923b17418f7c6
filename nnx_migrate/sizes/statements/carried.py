"""Sizes that a loop carries from round to round."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.frames import Frame, Loop
from nnx_migrate.sizes.interpreter import OUT_VARIABLE
from nnx_migrate.sizes.statements.assignment import assign
from nnx_migrate.sizes.values import Argument, Array, Choice, Record, Unknown, Value, as_array

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def run_round(
    interpreter: Interpreter, statement: ast.For, frame: Frame, value: Value, loop: Loop
) -> None:
    """Run the body of a loop once."""
    interpreter.loops.append(loop)
    try:
        assign(interpreter, statement.target, value, frame)
        interpreter.run(statement.body, frame)
    finally:
        interpreter.loops.pop()


@dataclass(frozen=True)
class _Snapshot:
    """What the interpreter had noted before a loop ran."""

    records: dict[int, int]
    statics: dict[int, str | None]
    carried: dict[int, list[tuple[str, Expr, Expr]]]


def take_snapshot(interpreter: Interpreter) -> _Snapshot:
    """What the interpreter has noted so far."""
    return _Snapshot(
        {key: len(uses) for key, uses in interpreter.root.records.items()},
        dict(interpreter.statics),
        {key: list(entries) for key, entries in interpreter.carried.items()},
    )


def restore_to(interpreter: Interpreter, before: _Snapshot) -> None:
    """Forget what was noted since a snapshot."""
    for key, uses in interpreter.root.records.items():
        del uses[before.records.get(key, 0) :]
    interpreter.statics = dict(before.statics)
    interpreter.carried = {key: list(entries) for key, entries in before.carried.items()}


def keep_last(start: dict[str, Value], env: dict[str, Value], name: str) -> None:
    """An array whose last size the loop does not change keeps the one it had."""
    old, new = as_array(start[name]), as_array(env.get(name, start[name]))
    if old is not None and new is not None and name in env and new.axis(-1) != old.axis(-1):
        env[name] = new.with_last(old.axis(-1))


def _check_record(problems: list[str], name: str, before: Record, after: Record) -> None:
    """Sizes inside a structure are not carried: a loop that changes them is not understood."""
    for key, value in before.entries.items():
        old, new = as_array(value), as_array(after.entries.get(key, value))
        if old is not None and new is not None and old.axis(-1) != new.axis(-1):
            problems.append(f"the loop changes the size of {name}.{key}")


def moved_sizes(
    before: dict[str, Value], after: dict[str, Value], problems: list[str]
) -> frozenset[str]:
    """Arrays whose last size the loop changes."""
    found = set()
    for name, value in before.items():
        latest = after.get(name, value)
        if isinstance(value, Record) and isinstance(latest, Record):
            _check_record(problems, name, value, latest)
        old, new = as_array(value), as_array(latest)
        if old is None or new is None or isinstance(latest, Argument):
            continue
        if old.axis(-1) != new.axis(-1) and old.axis(-1) is not None:
            found.add(name)
    return frozenset(found)


def lost_sizes(start: dict[str, Value], frame: Frame) -> frozenset[str]:
    """Arrays that the loop turns into values nobody knows: later rounds meet another size."""
    if not frame.own:
        return frozenset()
    found = set()
    for name, value in start.items():
        latest = frame.env.get(name, value)
        array = as_array(value) if isinstance(value, Array | Argument) else None
        if latest is not value and isinstance(latest, Unknown | Choice):
            known = array is not None and array.axis(-1) is not None
            found |= {name} if known and as_array(latest) is None else set()
    return frozenset(found)


def _is_read(interpreter: Interpreter, symbol: str) -> bool:
    """Whether the size of a submodule, or of what it is called with, is ``symbol``."""
    sizes: list[Expr | None] = []
    for uses in interpreter.root.records.values():
        for use in uses:
            sizes += use.sizes.values()
            for value in use.arguments.values():
                array = as_array(value)
                sizes += array.tail if array else ()
    texts = [text for text in interpreter.statics.values() if text]
    return any(one and symbol in one.names for one in sizes) or any(symbol in t for t in texts)


def run_carried(
    interpreter: Interpreter,
    statement: ast.For,
    frame: Frame,
    value: Value,
    loop: Loop,
    start: dict[str, Value],
    moved: frozenset[str],
) -> frozenset[str]:
    """Run the body with the changing sizes as loop-carried variables; those that do change."""
    frame.env = dict(start)
    depth = len(interpreter.carrying)
    mark = f"_{depth + 1}" if depth else ""
    symbols = {name: f"{name}_features{mark}" for name in sorted(moved)}
    interpreter.symbols.update(symbols.values())
    for name, symbol in symbols.items():
        array = as_array(start[name])
        if array is not None:
            frame.env[name] = array.with_last(ex.name(symbol))
    interpreter.carrying.append(statement)
    try:
        run_round(interpreter, statement, frame, value, loop)
    finally:
        interpreter.carrying.pop()
    changed = {name for name in symbols if not _is_invariant(frame.env[name], symbols[name])}
    if changed != moved:
        return frozenset(changed)
    for name, symbol in symbols.items():
        _carry(interpreter, statement, frame, loop, start, name, symbol)
    return moved


def _is_invariant(value: Value, symbol: str) -> bool:
    array = as_array(value)
    last = array.axis(-1) if array else None
    return last is not None and last.text == symbol


def _carry(
    interpreter: Interpreter,
    statement: ast.For,
    frame: Frame,
    loop: Loop,
    start: dict[str, Value],
    name: str,
    symbol: str,
) -> None:
    """Note one carried size, and what it is once the loop is over."""
    before, after = as_array(start[name]), as_array(frame.env[name])
    first = before.axis(-1) if before else None
    last = after.axis(-1) if after else None
    if after is None and not _is_read(interpreter, symbol):
        return
    if first is None or after is None or last is None:
        interpreter.problems.append((statement, f"the size of {name} after the loop is unknown"))
        return
    owners = list(dict.fromkeys(id(one) for one in loop.origins)) or [id(statement)]
    if frame.own:
        for owner in owners:
            interpreter.carried.setdefault(owner, []).append((symbol, first, last))
    final = ex.substitute(last, loop.last)
    inside = {*interpreter.symbols, *loop.last}
    local = any(one in inside or one.startswith(OUT_VARIABLE) for one in final.names)
    known = ex.name(symbol) if frame.own else None
    frame.env[name] = after.with_last(known if local else final)
