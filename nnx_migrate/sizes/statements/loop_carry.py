"""Last sizes that a loop carries from round to round, in local variables of ``__init__``."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.slices import bounds
from nnx_migrate.abstract.values import Argument, Array, Unknown, Value
from nnx_migrate.sizes.frames import Loop
from nnx_migrate.sizes.interpreter import spellable
from nnx_migrate.sizes.loop_names import inside
from nnx_migrate.sizes.out_variables import OUT_VARIABLE
from nnx_migrate.sizes.statements.entry import (
    Entry,
    Rounds,
    last_of,
    lose,
    shrinking_locals,
    weaken,
)
from nnx_migrate.source.names import unused_name
from nnx_migrate.source.walking import names_in, walk

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


@dataclass(frozen=True)
class _Snapshot:
    """What the interpreter had noted before a loop ran."""

    calls: int
    reads: int
    statics: dict[int, str | None]
    carries: dict[int, list[tuple[str, Expr, Expr]]]
    equal: dict[frozenset[str], tuple[int, int]]
    problems: int


def _snapshot(interpreter: Interpreter) -> _Snapshot:
    return _Snapshot(
        len(interpreter.journal),
        len(interpreter.reads),
        dict(interpreter.statics),
        {key: list(entries) for key, entries in interpreter.carries.items()},
        dict(interpreter.equal),
        len(interpreter.problems),
    )


def _restore(interpreter: Interpreter, before: _Snapshot) -> None:
    while len(interpreter.journal) > before.calls:
        interpreter.journal.pop().pop()
    del interpreter.reads[before.reads :]
    interpreter.statics = dict(before.statics)
    interpreter.carries = {key: list(entries) for key, entries in before.carries.items()}
    interpreter.equal = dict(before.equal)
    del interpreter.problems[before.problems :]


def settled_entry(rounds: Rounds) -> Entry:
    """Run rounds until their end agrees with their start; the last run is the one that counts."""
    interpreter, before = rounds.interpreter, _snapshot(rounds.interpreter)
    entry, stable_names = Entry(dict(rounds.frame.env)), set[str]()
    for name in shrinking_locals(rounds.statement):
        if isinstance(entry.values.get(name), Argument):
            entry.values[name] = Unknown("what is left of a tuple or an array")
    while True:
        _restore(interpreter, before)
        begun = entry.env()
        if entry.symbols:
            interpreter.carrying.append(rounds.statement)
        try:
            ends = rounds.run(begun)
        finally:
            if entry.symbols:
                interpreter.carrying.pop()
        changed = [weaken(rounds, entry, begun, end) for end in ends]
        moving_names = _moving_names(entry, begun, ends)
        if not any(changed) and not _follow(rounds, entry, ends, moving_names, stable_names):
            return entry


def _moving_names(entry: Entry, start: dict[str, Value], ends: list[dict[str, Value]]) -> set[str]:
    """Arrays whose known last size some round changes."""
    found = set()
    for name, old in entry.values.items():
        first = last_of(start[name])
        if as_array(old) is not None and first is not None:
            lasts = [last_of(end.get(name, old)) for end in ends]
            if name in entry.symbols or any(last != first for last in lasts):
                found.add(name)
    return found


def _follow(
    rounds: Rounds,
    entry: Entry,
    ends: list[dict[str, Value]],
    moving_names: set[str],
    settled_names: set[str],
) -> bool:
    """Carry, stop carrying or give up the last sizes that moved; whether that changes anything.

    ``settled_names`` are those that once proved to be the same in every round.
    """
    changed = False
    for name in sorted(moving_names):
        lasts = [last_of(end.get(name)) for end in ends]
        symbol = entry.symbols.get(name)
        if symbol is None:
            if name in settled_names:
                lose(entry, name)
            else:
                entry.symbols[name] = _symbol(rounds, name)
            changed = True
        elif all(last is not None and last.text == symbol for last in lasts):
            del entry.symbols[name]
            settled_names.add(name)
            changed = True
        elif not _is_carried(rounds, entry, name, lasts):
            lose(entry, name)
            changed = True
    return changed


def _symbol(rounds: Rounds, name: str) -> str:
    """A name of this loop's own: what an earlier loop left may be read after this one.

    The class's code may have locals of any name, which move into ``__init__`` with it.
    """
    symbols, place = rounds.interpreter.symbols, (rounds.statement, name)
    used_names = rounds.interpreter.root.info.local_names
    if place not in symbols:
        stem = f"{name}_features" if rounds.frame.own else f"{ex.FOREIGN}{name}_features"
        symbols[place] = unused_name(stem, used_names | {*symbols.values()})
    return symbols[place]


def _is_carried(rounds: Rounds, entry: Entry, name: str, lasts: list[Expr | None]) -> bool:
    """Whether ``__init__`` can compute the size of the next round at the end of a round."""
    first, last = last_of(entry.values[name]), lasts[0]
    if rounds.frame.own and not _reaches_init(rounds):
        return False
    others = set(entry.symbols.values()) - {entry.symbols[name]}
    if lasts[0] is not None and lasts[0].names & others:
        return False  # __init__ gives them their next values one after another
    if rounds.loop.origins and rounds.loop.is_reordered:
        return False
    if first is None or last is None or any(one != last for one in lasts[1:]):
        return False
    if not rounds.frame.own:
        return True
    places = [pair for owner in _owners(rounds) for pair in _spell(rounds, owner, first, last)]
    return all(map(spellable, places))


def _reaches_init(rounds: Rounds) -> bool:
    """Whether ``__init__`` has this loop, or one that made what it goes over."""
    return bool(rounds.loop.origins) or _builds(rounds, rounds.statement)


def _builds(rounds: Rounds, loop: ast.AST) -> bool:
    known = rounds.interpreter.submodules.keys() | rounds.interpreter.entered_calls
    return any(id(one) in known for one in walk(loop))


def _owners(rounds: Rounds) -> list[ast.AST]:
    """The loops of ``__init__`` in which the size is carried: those that make the layers, not mere numbers."""
    owners = {id(one): one for one in rounds.loop.origins if _builds(rounds, one)}
    if not owners or _builds_itself(rounds):
        owners[id(rounds.statement)] = rounds.statement
    return list(owners.values())


def _builds_itself(rounds: Rounds) -> bool:
    """Whether the rounds build submodules, in a method that they call or at the place."""
    info, built = rounds.interpreter.root.info, rounds.interpreter.submodules
    nodes = walk(rounds.statement)
    found = (info.find(one.attr) for one in nodes if isinstance(one, ast.Attribute))
    inside = (node for one in found if one is not None for node in walk(one[1]))
    return any(id(one) in built for one in (*nodes, *inside))


def _ends_with_its_owner(rounds: Rounds) -> bool:
    """Whether what one loop of ``__init__`` carries to its end is what this loop ends with."""
    owners = _owners(rounds)
    return len(owners) == 1 and (rounds.loop.ends or owners[0] is rounds.statement)


def _spell(rounds: Rounds, owner: ast.AST, first: Expr, last: Expr) -> tuple[Expr, Expr]:
    """Both sizes in the names of the source: before ``owner``, and at the end of its rounds."""
    names = rounds.interpreter.loop_names
    return names.at(first, owner), names.at(last, inside(owner))


def carry(rounds: Rounds, entry: Value, name: str, symbol: str) -> None:
    """Note one carried size, and what it is once the loop is over.

    ``__call__`` says it where other methods run the same loop: ``act`` with its ``self(obs)``.
    """
    interpreter, frame, loop = rounds.interpreter, rounds.frame, rounds.loop
    first, after = last_of(entry), as_array(frame.env[name])
    last = last_of(after)
    assert first is not None
    if not isinstance(after, Array) or last is None:
        return
    is_said = symbol in interpreter.carried_by_call
    interpreter.nested_carries |= {symbol} if interpreter.carrying else set()
    if frame.own and not is_said:
        for owner in _owners(rounds):
            before, latest = _spell(rounds, owner, first, last)
            interpreter.carries.setdefault(id(owner), []).append((symbol, before, latest))
    final = ex.substitute(last, loop.last)
    variables = {loop.variable(one) for one in names_in(rounds.statement.target)}
    own = {*interpreter.symbols.values(), *loop.last, *variables}
    local = any(one in own or one.startswith(OUT_VARIABLE) for one in final.names)
    end = ex.name(symbol) if frame.own and _ends_with_its_owner(rounds) else None
    if not local:
        is_free = final == last and runs(loop)  # known without the loop
        without = final if _is_kept(rounds, symbol, last) else end_size(loop, first, final)
        # Heirs of the class cannot read the local of its loop.
        if (is_free or end is not None) and not is_said:
            interpreter.endings[symbol] = without or final
        end = final if runs(loop) or first == final else end or without
    frame.env[name] = after.with_last(end)


def _is_kept(rounds: Rounds, symbol: str, last: Expr) -> bool:
    """Whether a round adds what it ends with to what it begins with: ``x = x + self.layer(x)``."""
    interpreter = rounds.interpreter
    here = len(interpreter.conditions), len(interpreter.loops) + 1
    found = interpreter.equal.get(frozenset({symbol, last.text}))
    return found is not None and found[0] <= here[0] and found[1] <= here[1]


def runs(loop: Loop) -> bool:
    """Whether a loop surely has a round."""
    least = bounds(loop.rounds)[0] if loop.rounds is not None else None
    return bool(loop.first) or (least is not None and least > 0)


def end_size(loop: Loop, first: Expr, final: Expr) -> Expr | None:
    """The size after a loop, which may have had no round: ``for f in self.widths[:-1]``.

    Unknown where it was unknown at the start.
    """
    if runs(loop) or first == final:
        return final
    if any(map(_is_unknown, first.names)):
        return None
    if loop.rounds is None:
        return final
    return ex.choose(ex.greater(loop.rounds, ex.literal(0)), final, first)


def _is_unknown(identifier: str) -> bool:
    return ex.is_input(identifier) and ex.opaque_local(ex.input_of(identifier)[0]) is not None
