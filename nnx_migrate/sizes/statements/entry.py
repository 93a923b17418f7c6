"""One abstract round of a loop, and what holds at the start of every round."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.lists import with_perhaps
from nnx_migrate.abstract.values import Array, Sequence, Unknown, Value
from nnx_migrate.sizes.assignment import assign
from nnx_migrate.sizes.frames import Frame, Loop
from nnx_migrate.sizes.statements.widening import common_axes, widen
from nnx_migrate.source.walking import each, is_name, walk

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


@dataclass(frozen=True)
class Rounds:
    """A loop that is run once for all its rounds."""

    interpreter: Interpreter
    statement: ast.For
    frame: Frame
    value: Value
    loop: Loop

    def run(self, env: Mapping[str, Value]) -> list[dict[str, Value]]:
        """Run one round from ``env``; the locals wherever it ends, its body's end first."""
        frame = self.frame
        frame.env, frame.jumps = dict(env), []
        self.interpreter.loops.append(self.loop)
        try:
            assign(self.interpreter, self.statement.target, self.value, frame)
            with self.interpreter.in_round(self.statement):
                self.interpreter.run(self.statement.body, frame)
        finally:
            self.interpreter.loops.pop()
        return [frame.env, *frame.jumps]

    def only_grows(self, name: str) -> bool:
        """Whether the body does nothing with a list but add items to it."""
        inside = [one for part in self.statement.body for one in walk(part)]
        grown = {
            id(one.func.value)
            for one in inside
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in ("append", "extend")
        }
        grown |= {id(one.target) for one in inside if isinstance(one, ast.AugAssign)}
        return all(id(one) in grown for one in inside if is_name(one, name))


def shrinking_locals(statement: ast.For) -> set[str]:
    """Locals that rounds rebind to a part of themselves: ``rest = rest[:-1]``."""
    return {
        target.id
        for one in each(statement, ast.Assign)
        if isinstance(one.value, ast.Subscript)
        and isinstance(one.value.slice, ast.Slice)
        and isinstance(one.value.value, ast.Name)
        for target in one.targets
        if is_name(target, one.value.value.id)
    }


@dataclass
class Entry:
    """What holds at the start of every round; ``symbols`` name last sizes that rounds change."""

    values: dict[str, Value]
    symbols: dict[str, str] = field(default_factory=dict)

    def env(self) -> dict[str, Value]:
        """The locals with which a round starts."""
        found = dict(self.values)
        for name, symbol in self.symbols.items():
            array = as_array(found[name])
            if array is not None:
                found[name] = array.with_last(ex.name(symbol))
        return found


def last_of(value: Value | None) -> Expr | None:
    """The last size of a value that is an array."""
    array = as_array(value) if value is not None else None
    return array.axis(-1) if array else None


def weaken(
    rounds: Rounds, entry: Entry, start: Mapping[str, Value], end: Mapping[str, Value]
) -> bool:
    """Forget what a round that ended with ``end`` changed, last sizes aside; whether it did."""
    changed = False
    for name, old in entry.values.items():
        latest = end.get(name, old)
        if latest is start[name]:
            continue
        if _grew(old, latest) and rounds.only_grows(name):
            continue
        array = rounds.interpreter.array
        before, one, two = array(old), array(start[name]), array(latest)
        if before is not None and one is not None and two is not None:
            new: Value = _same_axes(old, before, one, two)
        else:
            new = widen(old, latest, name, rounds.statement.lineno)
        if new != old:
            entry.values[name] = new
            changed = True
    return changed


def _grew(old: Value, latest: Value) -> bool:
    longer = with_perhaps(latest)
    if not isinstance(old, Sequence) or longer is None:
        return False
    return len(longer.items) > len(old.items) and old.is_list


def _same_axes(old: Value, before: Array, start: Array, latest: Array) -> Value:
    """The array ``before`` of ``old`` without the axes that a round changes; the last one stays."""
    common = common_axes(start, latest)
    result = common.with_last(before.axis(-1)) if before.rank != 0 else before
    width = max(len(before.tail), len(result.tail))
    ranks = [(one.rank, one.least, one.origin) for one in (before, result)]
    if ranks[0] == ranks[1] and before.last_sizes(width) == result.last_sizes(width):
        return old
    return result


def lose(entry: Entry, name: str) -> None:
    """Nobody knows the last size of ``name`` at the start of a round."""
    entry.symbols.pop(name, None)
    array = as_array(entry.values[name])
    entry.values[name] = (
        array.with_last(None) if array is not None else Unknown("a loop changes it")
    )
