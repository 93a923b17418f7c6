"""One function (or module) while it is read: what its names hold, and what becomes of its places."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    UNKNOWN,
    Flow,
    Function,
    Kind,
    OfFlow,
    Unsure,
    Updates,
    flows_of,
    functions_of,
    holds_updates,
    is_special,
    join,
    with_flow,
)
from nnx_migrate.rewrite.loops.names import prefix_of
from nnx_migrate.rewrite.loops.plan import Change, Line
from nnx_migrate.rewrite.loops.program import Problem, Program, Summary
from nnx_migrate.source.names import parameter_names, unused_name
from nnx_migrate.source.project import Scope

Branch: TypeAlias = tuple[dict[str, Kind], set[str], set[str]]
Node = ast.FunctionDef | ast.Module


@dataclass
class Frame:
    """A function while it is read.

    Attributes:
      names: what its names hold; a name that is not there holds nothing of a flow.
      stale: names that hold an earlier state of a flow.
      left_stale: names that held an earlier state after some statement.
      kinds: what its names held anywhere, for the functions inside.
      aged: flows that were updated at all.
      jumps: what held where a loop was left or went on in the middle.
      owed: running statistics that a call gave and that are not kept yet, by flow.
      top: the expression in which a flow may be updated.
    """

    program: Program
    node: Node
    scope: Scope
    outer: Frame | None
    value: Callable[[Frame, ast.expr], Kind]
    names: dict[str, Kind] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    left_stale: set[str] = field(default_factory=set)
    kinds: dict[str, Kind] = field(default_factory=dict)
    owed: set[str] = field(default_factory=set)
    aged: set[str] = field(default_factory=set)
    jumps: list[Branch] = field(default_factory=list)
    outer_names: set[str] = field(default_factory=set)  # names of a function or module around
    top: ast.AST | None = None
    updates: list[Line] = field(default_factory=list)  # of this statement
    makers: dict[int, ast.Call] = field(default_factory=dict)
    inner: list[ast.FunctionDef] = field(default_factory=list)
    results: list[tuple[ast.AST, Kind]] = field(default_factory=list)
    own: frozenset[str] = frozenset()  # names that it binds
    identifiers: frozenset[str] = frozenset()  # every identifier of the outermost function
    is_compiled: bool = False
    is_method: bool = False  # or another function whose callers nobody follows
    names_by_flow: dict[str, tuple[str, str]] = field(default_factory=dict)  # names, by flow
    values: dict[tuple[str, str], str] = field(default_factory=dict)  # those of fields

    @property
    def key(self) -> int:
        """The id of the function."""
        return id(self.node)

    @property
    def summary(self) -> Summary:
        """What is known of this function."""
        return self.program.summary(self.key)

    # ---- what is found

    def change(self, node: ast.AST, change: Change, of: int | None = None) -> None:
        """Note what becomes of a node, of this function or of the one that it stands beside."""
        key = self.key if of is None else of
        self.program.changes.setdefault(key, {})[id(node)] = change

    def problem(self, node: ast.AST, reason: str, of: int | None = None) -> Kind:
        """Note why the loop stays functional, of this function or of another."""
        found = Problem(self.scope.module.path, node, reason)
        known = self.program.problems.setdefault(self.key if of is None else of, [])
        if all(one.node is not node for one in known):
            known.append(found)
        return self.program.rest

    def resolve(self, node: ast.expr) -> str:
        """The symbol of a name that is no local value, else nothing."""
        return self.program.project.resolve(node, self.scope) or ""

    def link(self, function: int) -> None:
        """This function and another go the same way."""
        self.program.links.add((self.key, function))

    def escape(self, node: ast.AST, kind: Kind) -> None:
        """A function goes where nobody knows how it is called."""
        for one in functions_of(kind):
            name = self.program.nodes[one][0].name
            reason = f"{name} is used here in an unknown way"
            self.program.escapes.setdefault(one, Problem(self.scope.module.path, node, reason))

    # ---- names

    def look_up(self, node: ast.Name) -> Kind:
        """What a name holds."""
        frame: Frame | None = self
        while frame is not None and node.id not in frame.own and node.id not in frame.names:
            frame = frame.outer
        if frame is None:
            return PLAIN
        kinds = frame.names if frame is self else frame.kinds
        kind = kinds.get(node.id, PLAIN)
        if isinstance(kind, Unsure):
            return self.problem(node, f"what {node.id} is here is not known: {kind.reason}")
        if frame is not self and is_special(kind):
            self.link(frame.key)
            if self.is_compiled or any(one.is_compiled for one in self._between(frame)):
                return self.problem(node, f"{node.id} of the function around is compiled in")
        if frame is self and node.id in self.stale:
            return self.problem(node, f"{node.id} is read after a later state was made of it")
        return kind

    def _between(self, frame: Frame) -> Iterator[Frame]:
        one = self.outer
        while one is not None and one is not frame:
            yield one
            one = one.outer

    def bind(self, name: str, kind: Kind) -> None:
        """A name holds something else now."""
        self.names[name] = kind
        self.stale.discard(name)
        before = self.kinds.get(name)
        self.kinds[name] = kind if before is None else join(before, kind) or PLAIN
        if self.outer is None and isinstance(kind, Function):
            self.program.aliases.add((self.scope.module.name, name, kind.node))

    def bind_plainly(self, place: ast.AST, name: str) -> None:
        """A name may hold something else now that is nothing of a flow: ``:=``, a pattern."""
        if self.names.get(name, PLAIN) not in (PLAIN, UNKNOWN):
            self.problem(place, f"{name} is bound within an expression, a pattern or a handler")
        self.bind(name, PLAIN)

    def rekey(self, old: Flow, new: Flow) -> None:
        """All that names hold of a flow is part of the other one."""
        for names in (self.names, self.kinds):
            for name, kind in names.items():
                if isinstance(kind, OfFlow) and kind.flow == old:
                    names[name] = with_flow(kind, new)

    def age(self, flow: Flow) -> None:
        """All that names hold of a flow belongs to an earlier state."""
        for name, kind in self.names.items():
            # What apply changed goes into whichever state comes next.
            if not isinstance(kind, Updates) and any(f.key == flow.key for f in flows_of(kind)):
                self.stale.add(name)
        self.aged.add(flow.key)
        if flow.is_parameter and flow.owner == self.key:
            self.summary.updates.add(flow.key)

    def owe(self, keys: Iterable[str]) -> None:
        """A call changed the running statistics of flows: the state has to keep them."""
        self.owed |= (found := set(keys))
        self.aged |= found  # an exception leaves an earlier state its own

    def need_optimizer(self, flow: Flow) -> str:
        """The name of a flow's optimizer."""
        frame: Frame | None = self
        while frame is not None and frame.key != flow.owner:
            frame = frame.outer
        if frame is not None and flow.is_parameter:
            frame.summary.optimizers.add(flow.key)
        return flow.optimizer

    def need_field(self, node: ast.AST, flow: Flow, name: str) -> str:
        """The variable that holds a field of a flow's state."""
        frame: Frame | None = self
        while frame is not None and frame.key != flow.owner:
            frame = frame.outer
        if frame is not None and flow.is_parameter:
            frame.summary.fields.setdefault(flow.key, set()).add(name)
        name_of_field = dict(flow.fields).get(name, "")
        if not name_of_field:
            self.problem(node, f"the state's {name} is read of a state that has no name")
        return name_of_field

    def replace(self, node: ast.AST, flow: Flow, fields: Iterable[str]) -> tuple[str, ...]:
        """The variables of fields of a flow's state that get other values."""
        if flow.is_parameter and flow.owner == self.key:
            self.summary.overrides.setdefault(flow.key, set()).update(fields)
        return tuple(self.need_field(node, flow, one) for one in fields)

    def named(self, node: ast.AST, flow: Flow) -> str:
        """The name of a flow's module in the new text."""
        if not isinstance(flow.model, str) or not flow.model:
            self.problem(node, "the module has no name here")
            return "model"
        own = {model for model, _ in self.names_by_flow.values()}
        if flow.model in own and flow.owner != self.key:
            self.problem(node, f"two modules would be called {flow.model} here")
        return flow.model

    def maker(self, place: int) -> ast.Call | None:
        """The call in this function that makes a gradient."""
        return self.makers.get(place)

    def fresh(self, *candidates: str) -> str:
        """The first of some names that means nothing else here."""
        chosen = {name for pair in self.names_by_flow.values() for name in pair}
        used = {*self.identifiers, *chosen, *self.values.values()}
        free = (one for one in candidates if one not in used)
        return next(free, None) or unused_name(candidates[-1], used)

    def flow_names(self, key: str) -> tuple[str, str]:
        """Names for the module and the optimizer of the flow that a variable holds."""
        if key in self.names_by_flow:
            return self.names_by_flow[key]
        prefix = prefix_of(key)
        model = self.fresh(f"{prefix}model", f"{prefix}net", f"{key}_model")
        optimizer = self.fresh(f"{prefix}optimizer", f"{key}_optimizer")
        self.names_by_flow[key] = model, optimizer
        return model, optimizer

    def with_values(self, key: str, flow: Flow) -> Flow:
        """A flow with variables for the fields of the state that a variable holds."""
        for name, _ in flow.fields:
            if (key, name) not in self.values:
                self.values[key, name] = self.fresh(f"{prefix_of(key)}{name}", f"{key}_{name}")
        return replace(flow, fields=tuple((one, self.values[key, one]) for one, _ in flow.fields))

    def is_same(self, own: Flow, other: Flow) -> bool:
        """Whether a flow is the other one: itself, or what the function around gives of it."""
        if own.key == other.key and own.owner == other.owner:
            return True
        return (
            own.is_parameter
            and own.owner == self.key
            and self.summary.origins.get(own.key) == {other.key}
        )

    def shadow(self, function: ast.Lambda) -> None:
        """The parameters of a lambda hold nothing of a flow while it is read."""
        self.names |= dict.fromkeys(parameter_names(function), PLAIN)

    # ---- branches

    def copy(self) -> Branch:
        """What a branch may change."""
        return dict(self.names), set(self.stale), set(self.owed)

    def restore(self, branch: Branch) -> None:
        """Go back to the beginning of a branch."""
        self.names, self.stale, self.owed = dict(branch[0]), set(branch[1]), set(branch[2])

    def leave(self, node: ast.AST, branch: Branch, result: Kind = PLAIN) -> None:
        """Go back to the names around a lambda or a comprehension.

        The module has what calls in there made of its running statistics, however often they ran: only
        those that ``result`` holds may still come to the state.
        """
        owed = self.owed - branch[2]
        self.restore(branch)
        self.owed |= owed
        flow_keys = {flow.key for flow in flows_of(result)} if holds_updates(result) else set()
        if owed - flow_keys:
            self.problem(
                node, "running statistics that apply returned here are not kept in the state"
            )

    def join(self, other: Branch) -> None:
        """What holds after one branch or the other."""
        names, stale, owed = other
        for name in {*self.names, *names}:
            kinds = self.names.get(name), names.get(name)
            self.names[name] = join(*kinds) or PLAIN
            for one in kinds:
                if one is not None and one != self.names[name]:
                    self.escape(self.node, one)
        self.stale |= stale
        self.owed |= owed
