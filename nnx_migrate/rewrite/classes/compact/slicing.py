"""Backward slice of a compact method: the steps that ``__init__`` needs.

Kept are all constructions, the control structure around them, and the plain statements that their
arguments, conditions and loop headers read. Expressions that sizes replace read no array.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from nnx_migrate.rewrite.classes.compact.call_conditions import CallConditions, tested_parameters
from nnx_migrate.rewrite.classes.compact.shapes import Shapes
from nnx_migrate.rewrite.classes.data import ClassRefused, Wants
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.effects import Effects
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.flow import (
    Bind,
    Branch,
    Build,
    Exit,
    Leave,
    Loop,
    Step,
    Unclear,
    binds,
    builds,
    each_step,
)
from nnx_migrate.rewrite.classes.reading.taint import Replaced, Taint, value_of
from nnx_migrate.source.bindings import target_names
from nnx_migrate.source.walking import each, walk

RULE = "compact"
Live = dict[str, ast.AST]  # name -> the construction that needs it


class Later(IntEnum):
    """What ``__init__`` does behind a step."""

    NOTHING = 0
    UNCALLED = 1  # it builds what no call has to reach: ``return nn.Dropout(self.rate)(x)``
    MORE = 2


@dataclass
class Slicer:
    """Prunes the steps of one method.

    Args:
      parameters: names only known in the call.
      init_texts: nodes with another text in ``__init__``, with the names that text reads.
      operands: the expressions that each item's construction reads, by id of its call.
    """

    parameters: frozenset[str]
    init_texts: Replaced
    operands: Mapping[int, Sequence[ast.AST]]
    taint: Taint
    values: set[int] = field(default_factory=set)  # items whose value __init__ reads again
    shapes: Shapes | None = None  # of call parameters that __init__ may read
    # ``init_texts`` without the shapes
    texts_without_shapes: Replaced = field(default_factory=dict)
    shape_readers: set[str] = field(default_factory=set)  # those whose shape it does read
    call_conditions: CallConditions | None = None  # conditions that the constructor is told about
    askable: frozenset[str] = frozenset()  # parameters that it may be told about
    updates: frozenset[int] = frozenset()  # statements that are kept for what they do, by id
    mutations: Mapping[str, ast.AST] = field(default_factory=dict)  # locals, by what changes them
    effects: Effects = field(default_factory=dict)  # locals, by what may change them as well
    # What local functions read when they are called, by their names.
    closures: Mapping[str, frozenset[str]] = field(default_factory=dict)
    guards: frozenset[int] = frozenset()  # statements that raise where fields say so, by id
    read: set[str] = field(default_factory=set, init=False)  # names that what is kept reads
    around: list[Live] = field(default_factory=list, init=False)  # of each loop, innermost last
    certain: set[int] = field(default_factory=set, init=False)  # items that a call has to reach

    @property
    def static(self) -> Replaced:
        """``texts_without_shapes`` with shapes, which depend on no value."""
        return (
            {**self.shapes.unread(self.texts_without_shapes), **self.texts_without_shapes}
            if self.shapes
            else self.texts_without_shapes
        )

    def run(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """The kept steps.

        Raises:
          Refused: a construction depends on what only the call knows.
        """
        live: Live = {}
        slice_steps = self._block(steps, live, later=Later.NOTHING)
        if self.shapes is not None:
            self.shape_readers = set(self.shapes.parameters & live.keys())
        for name in sorted(self.read & self.mutations.keys()):
            raise _changes(self.mutations[name], name)
        self._check_effects(slice_steps)
        for name in sorted((self.parameters - self.shape_readers) & live.keys()):
            raise _depends(live[name], name)
        return slice_steps

    def _check_effects(self, init_steps: Sequence[Step]) -> None:
        """What changes in silence has to change in a statement that ``__init__`` has as well."""
        changed = sorted(self.read & self.effects.keys())
        inside = (
            {id(node) for one in binds(init_steps) for node in walk(one.node)} if changed else ()
        )
        for name in changed:
            for place in self.effects[name]:
                if id(place) not in inside:
                    raise _changes(place, name)

    def _block(self, steps: Sequence[Step], live: Live, *, later: Later) -> tuple[Step, ...]:
        slice_steps: list[Step] = []
        for step in reversed(steps):
            found = self._step(step, live, later=max(later, _later(slice_steps)))
            slice_steps[:0] = found
        return tuple(slice_steps)

    def _step(self, step: Step, live: Live, *, later: Later) -> Sequence[Step]:
        match step:
            case Build(item=item):
                if not item.may_stay_uncalled:
                    self.certain.add(id(item.call))
                for one in self.operands[id(item.call)]:
                    self._need(one, item.call, live)
                    self._check_value(one, item.call)
                    if self.call_conditions is not None:
                        self.call_conditions.check(one, item.call)
                return [step]
            case Bind(node=node) | Branch(node=node) if id(node) in self.guards:
                return [step] if later else []
            case Bind():
                return self._bind(step, live)
            case Exit(node=node):
                if isinstance(node, ast.Raise) or not later:
                    return []
                if isinstance(node, ast.Break | ast.Continue):
                    # What the next round reads, or what follows the loop.
                    for name, why in self.around[-1].items():
                        live.setdefault(name, why)
                return [step]
            case Leave(node=node):
                if later:
                    raise _left(node)
                return []
            case Branch():
                return self._branch(step, live, later=later)
            case Loop():
                return self._loop(step, live, later=later)
            case Unclear(node=node, reason=reason):
                raise ClassRefused(node, reason, "move the construction out of it", RULE)

    def _need(
        self, node: ast.AST, why: ast.AST, live: Live, without: frozenset[str] = frozenset()
    ) -> None:
        names = free_names(node, self.init_texts) - without
        names = names.union(*(self.closures.get(name, ()) for name in names))
        self.read |= names
        for name in names:
            live.setdefault(name, why)
        self.values |= {id(one) for one in walk(node)} & self.operands.keys()

    def _bind(self, step: Bind, live: Live) -> Sequence[Step]:
        live_names = [name for name in (*step.defines, *step.mutates) if name in live]
        if not live_names and id(step.node) not in self.updates:
            return []
        why = live[live_names[0]] if live_names else step.node
        for name in step.defines - step.mutates:
            live.pop(name, None)
        before = self.taint.before.get(id(step), frozenset())
        if self.shapes is None:
            self._need(step.node, why, live)
        elif free_names(value_of(step.node), self.static) & before:
            self._need(step.node, why, live, without=self.shapes.flags & before)
            self.shapes.note_evaluation(step, before)
        else:
            self._need(step.node, why, live)
            self.shapes.check(step.node, before, self.texts_without_shapes)
        return [step]

    def _check_value(self, node: ast.AST, call: ast.Call) -> None:
        """With shapes at hand, what a construction reads is a shape and never a value."""
        tainted = self.taint.at.get(id(call), frozenset())
        names = free_names(node, self.static) & tainted
        if self.shapes is not None and names:
            raise _depends(call, min(names))
        self._check_shapes(node, tainted)

    def _decide(self, step: Branch | Loop, node: ast.AST, why: ast.AST, live: Live) -> None:
        """Keep what decides about a step: shapes may, what is computed from values may not."""
        self._need(node, why, live)
        before = self.taint.before.get(id(step), frozenset())
        if self.shapes is not None:
            values = self.shapes.values(node, before, self.texts_without_shapes)
            if values:
                raise _depends(node, min(values))
        self._check_shapes(node, before)

    def _check_shapes(self, node: ast.AST, tainted_names: frozenset[str]) -> None:
        if self.shapes is not None:
            self.shapes.check(node, tainted_names, self.texts_without_shapes)

    def _branch(self, step: Branch, live: Live, *, later: Later) -> Sequence[Step]:
        cause = self.taint.steps.get(id(step))
        inside = builds((*step.body, *step.orelse))
        if cause is None and self.call_conditions is not None:
            cause = self.call_conditions.cause(step, leaves=_leaves(step) and bool(later))
        if cause is not None and (inside or (_leaves(step) and later)):
            return self._dynamic(step, cause, inside, live, later=later)
        other = dict(live)
        body = self._block(step.body, live, later=later)
        orelse = self._block(step.orelse, other, later=later)
        for name, why in other.items():
            live.setdefault(name, why)
        if not body and not orelse:
            return []
        body = body or self._raise_steps(step, step.body, live)
        orelse = orelse or self._raise_steps(step, step.orelse, live)
        if (
            not later
            and not builds((*body, *orelse))
            and all(_is_exit(s) for s in (*body, *orelse))
        ):
            return []
        built = builds((*body, *orelse))
        why = built[0].call if built else next(iter(live.values()), step.node)
        self._decide(step, step.test, why, live)
        return [replace(step, body=body, orelse=orelse)]

    def _raise_steps(self, step: Branch, arm: Sequence[Step], live: Live) -> tuple[Step, ...]:
        """``raise ValueError(self.kind)`` in place of what the other arm does, where fields alone say it."""
        *before, last = arm or (None,)
        match last:
            case Exit(node=ast.Raise() as node) if all(isinstance(one, Bind) for one in before):
                unknown = self.taint.before.get(id(step), frozenset())
                if not any(free_names(one, self.static) & unknown for one in _nodes(arm)):
                    self._need(node, node, live)
                    return (*self._block(before, live, later=Later.MORE), last)
        return ()

    def _dynamic(
        self, step: Branch, cause: str, inside: list[Item], live: Live, *, later: Later
    ) -> Sequence[Step]:
        """A condition on the call: only what has no variables before its own may be built regardless of it."""
        certain = [item for item in inside if not item.may_stay_uncalled]
        if certain:
            raise ClassRefused(
                certain[0].call,
                f"it is built only under a condition on {cause!r}, known in the call alone",
                f"make {cause!r} a field, or build it unconditionally",
                RULE,
                Wants(
                    facts=tested_parameters(step.test, self.askable),
                    lazy=frozenset(id(item.call) for item in certain),
                ),
            )
        if _leaves(step) and later > Later.UNCALLED:
            raise ClassRefused(
                step.node,
                f"the method returns early under a condition on {cause!r}, before it builds the rest",
                f"make {cause!r} a field, or build everything before returning",
                RULE,
                Wants(lazy=frozenset(self.certain)),
            )
        steps = [one for one in (*step.body, *step.orelse) if not isinstance(one, Exit)]
        return self._block(steps, live, later=later)

    def _loop(self, step: Loop, live: Live, *, later: Later) -> Sequence[Step]:
        inside = builds(step.body)
        cause = self.taint.steps.get(id(step))
        if cause is not None and inside:
            raise ClassRefused(
                inside[0].call,
                f"it is built in a loop over {cause!r}, whose length only the call knows",
                "loop over a field",
                RULE,
            )
        targets = set(target_names(step.target))
        returned = bool(later) and _returns(step.body)
        body: tuple[Step, ...] = ()
        self.around.append(live)
        while True:
            before, had = set(live), bool(body)
            round_live = dict(live)
            # A round that ends early decides about all that other rounds do, and what comes after a return.
            more = inside or had or returned
            body = self._block(step.body, round_live, later=Later.MORE if more else Later.NOTHING)
            for name, why in round_live.items():
                if name not in targets:
                    live.setdefault(name, why)
            if set(live) == before and bool(body) == had:
                break
        self.around.pop()
        if not body or (all(_is_exit(one) for one in body) and not returned):
            for name in sorted(_bound_by(step.target) & live.keys()):
                raise _changes(step.target, name)
            return []
        why = inside[0].call if inside else next(iter(live.values()), step.node)
        for one in (step.iterable, *step.conditions):
            self._decide(step, one, why, live)
        return [replace(step, body=body)]


def _later(init_steps: Sequence[Step]) -> Later:
    if all(isinstance(one, Build) and one.item.may_stay_uncalled for one in init_steps):
        return Later.UNCALLED if init_steps else Later.NOTHING
    return Later.MORE


def _bound_by(target: ast.expr) -> frozenset[str]:
    """Names that a loop binds, or changes: ``for ws[0] in ...``."""
    return frozenset(one.id for one in each(target, ast.Name))


def _nodes(steps: Sequence[Step]) -> Iterator[ast.AST]:
    return (one.node for one in steps if isinstance(one, Bind | Exit))


def _leaves(step: Branch) -> bool:
    """Whether a branch may leave the method or the loop round (a ``raise`` is no way out)."""
    for one in (*step.body, *step.orelse):
        if isinstance(one, Exit) and not isinstance(one.node, ast.Raise):
            return True
        if isinstance(one, Branch) and _leaves(one):
            return True
    return False


def _returns(steps: Sequence[Step]) -> bool:
    """Whether the method may end in these steps."""
    return any(
        isinstance(one, Leave) or (isinstance(one, Exit) and isinstance(one.node, ast.Return))
        for one in each_step(steps)
    )


def _left(node: ast.stmt) -> ClassRefused:
    return ClassRefused(
        node,
        "the method, or a round of its loop, may end in this statement, before it builds the rest",
        "return after what is built, or under an 'if'",
        RULE,
    )


def _is_exit(step: Step) -> bool:
    if isinstance(step, Branch):
        return all(_is_exit(one) for one in (*step.body, *step.orelse))
    return isinstance(step, Exit)


def _changes(node: ast.AST, name: str) -> ClassRefused:
    return ClassRefused(
        node,
        f"this changes {name!r}, which decides what is built",
        f"change {name!r} in the method itself, or build from fields only",
        RULE,
    )


def _depends(node: ast.AST, name: str) -> ClassRefused:
    return ClassRefused(
        node,
        f"what is built here depends on {name!r}, which is only known in the call",
        f"make {name!r} a field, or build from fields only",
        RULE,
    )
