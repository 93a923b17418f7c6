"""Indexes of loops: which variable counts the rounds from 0, or could.

``for size in self.sizes: x = nn.Dense(size)(x)`` builds ``Dense_0``, ``Dense_1``, ...: to say so, the
loop becomes ``for i, size in enumerate(self.sizes)`` in ``__init__`` and in the call. So does a comprehension's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Protocol

from nnx_migrate.edit.calls import Argument, call
from nnx_migrate.edit.expressions import Expression, display, dotted_node, expression, parenthesize
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.syntax import cst
from nnx_migrate.rewrite.classes.reading.flow import (
    Bind,
    Branch,
    Exit,
    Loop,
    Step,
    builds,
    each_step,
)
from nnx_migrate.rewrite.classes.uses.references import Edits
from nnx_migrate.source.names import names_in_text
from nnx_migrate.source.walking import each, has_starred, is_name, is_self, walk

_LETTERS = "ijkl"


class HasAttribute(Protocol):
    """What an item is called."""

    @property
    def text(self) -> str | None:
        """An f-string."""


@dataclass(frozen=True)
class Index:
    """What counts the rounds of a loop.

    Attributes:
      name: the variable.
      rounds: how many there are: a number, an expression over fields, or nobody knows.
      is_new: whether the loop has no such variable yet.
    """

    loop: Loop
    name: str
    rounds: int | str | None = None
    is_new: bool = False


@dataclass
class Indexes:
    """Finds the index of each loop; names of new ones are none of the ``used_names``.

    ``lengths`` are those of what loops run over, by id, as text over fields.
    """

    used_names: Collection[str] = ()
    lengths: Mapping[int, str] = field(default_factory=dict)
    by_loop: dict[int, Index] = field(default_factory=dict)

    def of(self, loop: Loop) -> Index | None:
        """The index, if every round counts."""
        if loop.conditions or _jumps(loop.body):
            return None
        if id(loop) not in self.by_loop:
            index = index_of(loop)
            if index is None or (index.name == "_" and not _reads(loop.node, "_")):
                index = self._new(loop, index)
            if index is None or _rebinds(loop.body, index.name):
                return None
            self.by_loop[id(loop)] = index
        return self.by_loop[id(loop)]

    def _new(self, loop: Loop, index: Index | None) -> Index | None:
        if isinstance(loop.node, ast.For) and loop.node.orelse:
            return index
        around = {one.name for one in self.by_loop.values() if _is_within(loop, one.loop)}
        names = chain(_LETTERS, (f"index_{number}" for number in count()))
        name = next(one for one in names if one not in around and one not in self.used_names)
        rounds = _length(loop.iterable) if index is None else index.rounds
        if index is None and rounds is None and id(loop.iterable) in self.lengths:
            text = self.lengths[id(loop.iterable)]
            rounds = int(text) if text.isdigit() else text
        return Index(loop, name, rounds, is_new=True)

    def read_by(self, names: Mapping[int, HasAttribute]) -> dict[int, Index]:
        """The new indexes that a name reads, by id of the loop's node."""
        found = {}
        for one in self.by_loop.values():
            texts = [
                names[id(item.call)].text
                for item in builds(one.loop.body)
                if id(item.call) in names
            ]
            read = {name for text in texts if text for name in names_in_text(text)}
            if one.is_new and one.name in read:
                found[id(one.loop.node)] = one
        return found


def _reads(node: ast.AST, name: str) -> bool:
    loads = (one for one in each(node, ast.Name) if one.id == name)
    return any(isinstance(one.ctx, ast.Load) for one in loads)


def _is_within(loop: Loop, outer: Loop) -> bool:
    return any(one is loop.node for one in walk(outer.node))


def index_edits(indexes: Mapping[int, Index], edits: Edits) -> Edits:
    """Edits that let the loops count their rounds, around ``edits`` of the same nodes."""
    made: Edits = {}
    for one in indexes.values():
        target, over = one.loop.target, one.loop.iterable
        if index_of(one.loop) is not None:
            made[id(target)] = dotted_node(one.name)
            continue
        made[id(target)] = _pair(one.name, target)
        made[id(over)] = _enumerate(over, edits.get(id(over)))
    return made


def count_edits(
    steps: Sequence[Step], indexes: Mapping[int, Index], lengths: Mapping[int, str]
) -> Edits:
    """Edits for ``__init__``, which has the number of some loops' items alone: ``for i in range(3)``.

    Args:
      indexes: new indexes, by id of the loop's node.
      lengths: those numbers, by id of what has the items.
    """
    made: Edits = {key: call("range", expression(text)) for key, text in lengths.items()}
    for loop in each_step(steps):
        match loop:
            case Loop(
                iterable=ast.Call(func=ast.Name(id="enumerate"), args=[over], keywords=[]),
                target=ast.Tuple(elts=[ast.Name(id=name), _]),
            ) if id(over) in lengths:
                made |= {id(loop.target): dotted_node(name), id(loop.iterable): made[id(over)]}
            case Loop(iterable=over) if id(over) in lengths:
                index = indexes.get(id(loop.node))
                made[id(loop.target)] = dotted_node("_" if index is None else index.name)
    return made


def _pair(name: str, target: ast.expr) -> Callable[[Renderer], Expression]:
    def make(renderer: Renderer) -> Expression:
        new_target = renderer.without(target).inner(target)
        if isinstance(new_target, cst.Tuple) and not new_target.lpar:
            new_target = parenthesize(new_target)
        return display([dotted_node(name), new_target]).with_changes(lpar=[], rpar=[])

    return make


def _enumerate(over: ast.expr, edit: Replacement | None) -> Callable[[Renderer], Expression]:
    def make(renderer: Renderer) -> Expression:
        plain = renderer.without(over)
        return call(
            "enumerate", Argument(plain.inner(over) if edit is None else plain.replacement(edit))
        )

    return make


def index_of(loop: Loop) -> Index | None:
    """The variable that counts the rounds from 0."""
    match loop.iterable, loop.target:
        case ast.Call(func=ast.Name(id="range"), args=[number], keywords=[]), ast.Name(id=name):
            known = number.value if isinstance(number, ast.Constant) else None
            return Index(loop, name, known if isinstance(known, int) and known >= 0 else None)
        case (
            ast.Call(func=ast.Name(id="enumerate"), args=[over], keywords=[]),
            ast.Tuple(elts=[ast.Name(id=name), _]),
        ):
            return Index(loop, name, _length(over))
        case _:
            return None


def _length(over: ast.expr) -> int | str | None:
    """The length of ``(3, 4)``; ``len(self.sizes)``, also of a slice."""
    if isinstance(over, ast.Tuple | ast.List):
        return None if has_starred(over.elts) else len(over.elts)
    is_part = isinstance(over, ast.Subscript) and isinstance(over.slice, ast.Slice)
    whole = over.value if isinstance(over, ast.Subscript) and is_part else over
    if not (isinstance(whole, ast.Attribute) and is_self(whole.value)):
        return None
    strings = (isinstance(one, ast.Constant) and isinstance(one.value, str) for one in walk(over))
    others = (isinstance(one, ast.Name) and not is_self(one) for one in walk(over))
    return None if any(strings) or any(others) else f"len({ast.unparse(over)})"


def _jumps(steps: Sequence[Step]) -> bool:
    for step in steps:
        match step:
            case Exit(node=ast.Break() | ast.Continue() | ast.Return()):
                return True
            case Branch(body=body, orelse=orelse):
                if _jumps(body) or _jumps(orelse):
                    return True
    return False


def _rebinds(steps: Sequence[Step], name: str) -> bool:
    for step in steps:
        match step:
            case Bind(defines=defines, mutates=mutates):
                if name in defines | mutates:
                    return True
            case Branch(body=body, orelse=orelse):
                if _rebinds(body, name) or _rebinds(orelse, name):
                    return True
            case Loop(target=target, body=body):
                shadows = any(is_name(one, name) for one in walk(target))
                if shadows or _rebinds(body, name):
                    return True
    return False
