"""``for``: the items one by one, or one abstract round for all of them.

The abstract round runs again and again until what holds at its start (:mod:`entry`) holds at its
end, too. The last axis of an array may change from round to round and still be known: it is
*carried* in a local variable of ``__init__`` (:mod:`loop_carry`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.lists import joined_lists, with_perhaps
from nnx_migrate.abstract.values import (
    Array,
    ExtendedList,
    Perhaps,
    RepeatedItem,
    Sequence,
    Unknown,
    Value,
)
from nnx_migrate.abstract.values import (
    Rounds as ListRounds,
)
from nnx_migrate.sizes.assignment import assign
from nnx_migrate.sizes.expressions.comprehensions import iterate
from nnx_migrate.sizes.flow import RETURN
from nnx_migrate.sizes.frames import Frame, Loop
from nnx_migrate.sizes.lists import lose_arguments
from nnx_migrate.sizes.statements.entry import Entry, Rounds, last_of
from nnx_migrate.sizes.statements.loop_carry import (
    carry,
    end_size,
    runs,
    settled_entry,
)
from nnx_migrate.sizes.statements.widening import forgotten, is_varying, widen
from nnx_migrate.source.bindings import binds_always, breaks, target_names
from nnx_migrate.source.changes import changed_names
from nnx_migrate.source.walking import each, names_in, walk

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

_MOST_ROUNDS = 16  # of a ``while`` loop, before what still changes is unknown


def run_loop(interpreter: Interpreter, statement: ast.For, frame: Frame) -> str | None:
    """Run a ``for`` loop; what ended the block early, or None."""
    _lose_mutations(statement, frame)
    iteration = iterate(interpreter, statement.iter, statement.target, frame, statement)
    jumps, frame.jumps = frame.jumps, []
    try:
        left: list[dict[str, Value]] = []
        if isinstance(iteration, list):  # few items, known one by one
            flow = _run_items(interpreter, statement, frame, iteration, left)
            _join_jumps(frame, left, statement)
            return flow
        value, loop = iteration
        if breaks(statement.body):
            # Any item may be the last one that a round meets.
            loop.ends = False
            loop.last |= {name: ex.name(name) for name in loop.last}
        if loop.first:
            _run_items(interpreter, statement, frame, loop.first, left)
        if not interpreter.loops:  # inside a loop the size may differ from round to round
            _name_unknown(interpreter, frame, statement)
        start = dict(frame.env)
        rounds = Rounds(interpreter, statement, frame, value, loop)
        entry = settled_entry(rounds)
        _join_jumps(frame, frame.jumps, statement)
        for name, symbol in entry.symbols.items():
            carry(rounds, entry.values[name], name, symbol)
        _forget_rounds(frame, statement, loop, entry, start)
        if not runs(loop):
            _forget_unknown(frame, start)
            _choose_by_rounds(frame, start, rounds, entry)
        _leave(interpreter, frame, statement, loop)
        _settle_lists(frame, start, loop)
        _join_jumps(frame, left, statement)
        return None
    finally:
        frame.jumps = jumps


def _lose_mutations(statement: ast.For, frame: Frame) -> None:
    """``for one in [ws, vs]: one[0] = 2`` changes what it goes through, whichever that is."""
    changed = (name for one in statement.body for name in changed_names(one))
    if not {*target_names(statement.target)}.isdisjoint(changed):
        through = (frame.env.get(one.id) for one in each(statement.iter, ast.Name))
        lose_arguments([one for one in through if one is not None], frame)


def run_while(interpreter: Interpreter, statement: ast.While, frame: Frame) -> None:
    """Run a ``while`` loop: afterwards holds what any number of rounds leaves as it was.

    Rounds run until what holds at the start of one holds at its end, too: ``a = b; b = c; c += 1``
    takes three to change ``a``.
    """
    jumps = frame.jumps
    for _ in range(_MOST_ROUNDS):
        interpreter.evaluate(statement.test, frame)
        start, frame.jumps = dict(frame.env), []
        with interpreter.under(None):
            interpreter.run(statement.body, frame)
        snapshot = dict(start)
        for end in (dict(frame.env), *frame.jumps):
            for name, old in snapshot.items():
                snapshot[name] = widen(old, end.get(name, old), name, statement.lineno)
        changed = [name for name, old in start.items() if snapshot[name] != old]
        is_settled = not changed and frame.env.keys() <= start.keys()
        frame.env = {**frame.env, **snapshot}
        if is_settled:
            break
    else:
        frame.env |= {name: Unknown("a loop changes it") for name in changed}
    frame.jumps = jumps


def _forget_rounds(
    frame: Frame, statement: ast.For, loop: Loop, entry: Entry, start: dict[str, Value]
) -> None:
    """Forget sizes that are not those of the last round's end.

    ``y = x`` at the start of a round keeps what ``x`` was then; what only some rounds bind may be
    from any of them.
    """
    inside = {*loop.last, *(loop.variable(one) for one in names_in(statement.target))}
    for name, value in frame.env.items():
        hidden = set() if name in entry.symbols else set(entry.symbols.values())
        if name not in start and not binds_always(statement.body, name):
            hidden |= inside
        frame.env[name] = forgotten(value, hidden)


def _forget_unknown(frame: Frame, start: Mapping[str, Value]) -> None:
    """After a loop that may have no round a last size is unknown where it was unknown before."""
    for name, old in start.items():
        now = frame.env.get(name)
        is_unknown = isinstance(old, Unknown) or (isinstance(old, Array) and old.axis(-1) is None)
        if is_unknown and isinstance(now, Array):
            frame.env[name] = now.with_last(None)


def _choose_by_rounds(
    frame: Frame, start: Mapping[str, Value], rounds: Rounds, entry: Entry
) -> None:
    """After a loop that may have no round a last size is the one before it where it has none."""
    for name in start.keys() & frame.env.keys() - entry.symbols.keys():
        now, first, last = frame.env[name], last_of(start[name]), last_of(frame.env[name])
        if isinstance(now, Array) and first is not None and last is not None:
            frame.env[name] = now.with_last(end_size(rounds.loop, first, last))


def _leave(interpreter: Interpreter, frame: Frame, statement: ast.For, loop: Loop) -> None:
    """After a loop its variables mean the last round: sizes that read them say so."""
    inside = {*loop.last, *(loop.variable(one) for one in names_in(statement.target))}
    for name, value in frame.env.items():
        if isinstance(value, Array):
            sizes = tuple(one and ex.substitute(one, loop.last) for one in value.tail)
            value = replace(value, tail=sizes) if sizes != value.tail else value
            names = {n for one in sizes if one for n in one.names}
            hidden = {n for n in names if n in inside or is_varying(n)}
            frame.env[name] = forgotten(value, hidden)
        elif isinstance(value, Sequence | RepeatedItem | ExtendedList):
            frame.env[name] = forgotten(value, inside | set(interpreter.symbols.values()))


def _name_unknown(interpreter: Interpreter, frame: Frame, statement: ast.For) -> None:
    """Give unknown last sizes that enter a loop a name: one argument can hand each of them in."""
    if not frame.own or not interpreter.names_entries:
        return
    read = names_in(statement)
    for name in sorted(read & frame.env.keys()):
        array = frame.env[name] if isinstance(frame.env[name], Array) else None
        if isinstance(array, Array) and array.rank != 0 and array.axis(-1) is None:
            frame.env[name] = array.with_last(ex.opaque_size(name, statement.lineno))


def _run_items(
    interpreter: Interpreter,
    statement: ast.For,
    frame: Frame,
    items: list[Value],
    left: list[dict[str, Value]],
) -> str | None:
    """Run a round for each item; ``left`` gets the locals with which a ``break`` may end the loop."""
    may_end = breaks(statement.body)
    for index, item in enumerate(items):
        frame.jumps = []
        assign(interpreter, statement.target, item, frame)
        with interpreter.in_round(statement) if index else nullcontext():
            flow = interpreter.run(statement.body, frame)
        if flow == RETURN:
            return RETURN
        _join_jumps(frame, frame.jumps, statement)
        if may_end:
            left += frame.jumps
    return None


def _join_jumps(frame: Frame, jumps: list[dict[str, Value]], statement: ast.For) -> None:
    """Keep what also holds where a round ended early."""
    for jump in jumps:
        for name in frame.env.keys() & jump.keys():
            both = widen(frame.env[name], jump[name], name, statement.lineno)
            frame.env[name] = both


def _settle_lists(frame: Frame, start: dict[str, Value], loop: Loop) -> None:
    """A list that grew by one item in the loop's single pass holds one item per iteration."""
    for name, one in frame.env.items():
        before = start.get(name)
        value = with_perhaps(one) if isinstance(before, Sequence) else one
        if isinstance(value, Sequence) and isinstance(before, Sequence) and value.is_list:
            added = value.items[len(before.items) :]
            if len(added) == 1 and not isinstance(added[0], Perhaps):
                length = loop.rounds if _appends_always(loop.node, name) else None
                rest = RepeatedItem(added[0], length, loop.node, dict(loop.last))
                frame.env[name] = ExtendedList(before.items, rest) if before.items else rest
            elif added and _appends_always(loop.node, name):
                each = RepeatedItem(Sequence(added), None, loop.node, dict(loop.last))
                frame.env[name] = joined_lists(before, ListRounds(each))
            elif len(added) == 1 and isinstance(added[0], Perhaps):
                some = RepeatedItem(added[0].item, is_numbered=False)
                frame.env[name] = ExtendedList(before.items, some) if before.items else some
            elif added:
                frame.env[name] = Unknown("a list that a loop extends")


def _appends_always(loop: ast.AST, name: str) -> bool:
    """Whether every round appends to the list, whatever it meets."""
    match loop:
        case ast.For(body=body) if not any(
            isinstance(one, ast.Break | ast.Continue) for part in body for one in walk(part)
        ):
            calls = [one.value for one in body if isinstance(one, ast.Expr)]
            texts = [ast.unparse(one.func) for one in calls if isinstance(one, ast.Call)]
            added = [ast.unparse(one.target) for one in body if isinstance(one, ast.AugAssign)]
            return not {f"{name}.append", f"{name}.extend"}.isdisjoint(texts) or name in added
    return False
