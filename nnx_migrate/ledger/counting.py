"""Counts references to Linen and call sites of Linen modules."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from nnx_migrate.ledger.constructors import lacks_rngs
from nnx_migrate.ledger.data import Count, Place, Source
from nnx_migrate.ledger.infer import Inference
from nnx_migrate.ledger.project import Project, Read
from nnx_migrate.ledger.reach import taints
from nnx_migrate.ledger.resolve import Definition, Resolver, Symbol, is_linen
from nnx_migrate.ledger.scopes import KNOWN_RECEIVER_METHODS, Scope, Unit
from nnx_migrate.ledger.suspects import suspects
from nnx_migrate.ledger.verdicts import Judge, Verdict


def count(
    sources: Sequence[Source], only: Collection[str] | None = None, read: Read | None = None
) -> Count:
    """Count references to Linen and call sites of Linen modules in a project.

    Args:
        sources: every file of the project; imports between them are followed.
        only: the paths to count in; the others are only read where imports lead. None: all.
        read: files as earlier counts read them; what this one reads is added.

    Returns:
        The places, sorted. A file that does not parse counts nothing and is in ``unreadable``.
    """
    project = Project(sources, read)
    tainted = taints(project)
    paths = sorted(
        path
        for path, source in project.sources.items()
        if source.module in tainted and (only is None or path in only)
    )
    units = [unit for unit in map(project.unit, paths) if unit is not None]
    resolver = Resolver(project, tainted)
    inference = Inference(resolver)
    judge = Judge(inference, [scope for unit in units for scope in unit.classes])
    counters = [_Counter(unit, resolver, inference, judge) for unit in units]
    judged = [item for counter in counters for item in counter.methods()]
    built = [item for counter in counters for item in counter.constructors()]
    wanted = sorted(project.sources if only is None else set(project.sources) & set(only))
    return Count(
        references=_sorted(place for counter in counters for place in counter.references()),
        call_sites=_sorted(place for kind, place in judged if kind == "call"),
        handles=_sorted(place for kind, place in judged if kind == "handle"),
        stale=_sorted(place for kind, place in judged if kind == "stale call"),
        stale_handles=_sorted(place for kind, place in judged if kind == "stale handle"),
        constructors=_sorted(place for state, place in built if state == "linen"),
        stale_constructors=_sorted(place for state, place in built if state == "nnx"),
        classes=_sorted(place for counter in counters for place in counter.classes()),
        paths=tuple(wanted),
        unreadable=tuple(path for path in paths if project.unit(path) is None),
    )


class _Counter:
    """Counts one file."""

    def __init__(self, unit: Unit, resolver: Resolver, inference: Inference, judge: Judge) -> None:
        self.unit = unit
        self.resolver = resolver
        self.inference = inference
        self.judge = judge

    @cached_property
    def suspects(self) -> frozenset[str] | None:
        """Names that may lead to Linen; None when a star import may have bound any."""
        return suspects(self.unit, self.resolver.taints, self.resolver.project)

    def references(self) -> list[Place]:
        """Names and longest dotted expressions that resolve to ``flax.linen`` or below."""
        found = []
        for node, scope, owner in self.unit.loads:
            if self.suspects is not None and _root(node) not in self.suspects:
                continue
            targets = self.resolver.resolve(node, scope)
            linen = sorted(one.name for one in targets if isinstance(one, Symbol) and is_linen(one))
            if linen:
                found.append(self.place(node, linen[0], owner, all(map(is_linen, targets))))
        return found

    def classes(self) -> list[Place]:
        """Classes whose base chain ends in a Linen class."""
        return [
            self.place(scope.node, scope.name, scope.name, True)
            for scope in self.unit.classes
            if self.inference.state(scope) == "linen"
        ]

    def methods(self) -> list[tuple[str, Place]]:
        """Linen module methods called, or named without a call, on what may be a module."""
        found = []
        for call, scope, owner in self.unit.calls:
            if isinstance(call.func, ast.Attribute):
                verdict = self.verdict(call.func, scope)
                if verdict is Verdict.STALE:
                    found.append(("stale call", self.place(call, call.func.attr, owner, True)))
                elif verdict is Verdict.LINEN or verdict is Verdict.MAYBE:
                    certain = verdict is Verdict.LINEN
                    found.append(("call", self.place(call, call.func.attr, owner, certain)))
        for node, scope, owner in self.unit.handles:
            verdict = self.verdict(node, scope)
            if verdict in (Verdict.LINEN, Verdict.STALE):
                kind = "handle" if verdict is Verdict.LINEN else "stale handle"
                found.append((kind, self.place(node, node.attr, owner, True)))
        return found

    def constructors(self) -> list[tuple[str, Place]]:
        """Calls of the project's Linen classes, and of NNX classes that lack their ``rngs``."""
        found = []
        own = {name for name, one in self.unit.bindings if one.kind in ("class", "alias")}
        for call, scope, owner in self.unit.named:
            if self.suspects is not None and _root(call.func) not in self.suspects | own:
                continue
            targets = self.resolver.resolve(call.func, scope)
            classes = [one.scope for one in targets if isinstance(one, Definition)]
            states = {self.inference.state(one) for one in classes if one.kind == "class"}
            if len(classes) != len(targets) or len(states) != 1:
                continue
            (state,) = states
            place = self.place(call, min(one.name for one in classes), owner, True)
            if state == "linen" or (state == "nnx" and lacks_rngs(call, classes, self.inference)):
                found.append((state, place))
        return found

    def verdict(self, node: ast.Attribute, scope: Scope) -> Verdict:
        """The verdict on the receiver of a method, common names on known receivers only."""
        verdict = self.judge.receiver(self.inference.infer(node.value, scope), node.attr)
        if verdict is Verdict.MAYBE and node.attr in KNOWN_RECEIVER_METHODS:
            return Verdict.NO
        return verdict

    def place(self, node: ast.AST, symbol: str, scope: str, certain: bool) -> Place:
        """Where a node stands, in characters and from 1."""
        line, end_line = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        column = self.column(line, getattr(node, "col_offset", 0))
        end_column = self.column(end_line, getattr(node, "end_col_offset", 0))
        return Place(self.unit.path, line, column, end_line, end_column, symbol, scope, certain)

    def column(self, line: int, offset: int) -> int:
        """The 1-based character column of a UTF-8 byte offset."""
        text = self.unit.lines[line - 1] if line <= len(self.unit.lines) else ""
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="replace")) + 1


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _sorted(places: Iterable[Place]) -> tuple[Place, ...]:
    return tuple(sorted(places))
