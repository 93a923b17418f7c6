"""Counts references to Linen and call sites of Linen modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from nnx_migrate.ledger.constructors import lacks_rngs
from nnx_migrate.ledger.data import Count, Place, Source
from nnx_migrate.ledger.externals import LAZY_CLASSES
from nnx_migrate.ledger.infer import Inference
from nnx_migrate.ledger.places import Method, Places
from nnx_migrate.ledger.project import Project, Read
from nnx_migrate.ledger.reach import taints
from nnx_migrate.ledger.resolve import Definition, Resolver, Symbol, Taints, is_linen
from nnx_migrate.ledger.scope_data import Scope, Unit
from nnx_migrate.ledger.scopes import KNOWN_RECEIVER_METHODS
from nnx_migrate.ledger.suspects import suspects
from nnx_migrate.ledger.verdicts import ClassKey, Judge, Verdict, class_key

# Characters of source whose syntax trees are held at a time: about 30 MiB of them.
AT_ONCE = 1_000_000

_NEWLINE = re.compile(r"\r\n|\r|\n")


def count(
    sources: Sequence[Source],
    only: Collection[str] | None = None,
    read: Read | None = None,
    at_once: int = AT_ONCE,
    *,
    are_lazy_linen: bool = False,
) -> Count:
    """Count references to Linen and call sites of Linen modules in a project.

    Args:
        sources: every file of the project; imports between them are followed.
        only: the paths to count in; the others are only read where imports lead. None: all.
        read: files as earlier counts read them; what this one reads is added.
        at_once: characters of files that are counted before their trees are let go, and those of
            what they import; with ``read`` all stay.
        are_lazy_linen: whether subclasses of `nnx_migrate.linen.Module` count as Linen's.

    Returns:
        The places, sorted. A file that does not parse counts nothing and is in ``unreadable``.
    """
    project = Project(sources, read)
    found = Places()
    tainted = taints(project, at_once)
    paths = sorted(
        path
        for path, source in project.sources.items()
        if source.module in tainted and (only is None or path in only)
    )
    for part in _parts(project, paths, at_once):
        project.trim(at_once)
        _count_part(project, tainted, part, found, are_lazy_linen)
    wanted = sorted(project.sources if only is None else set(project.sources) & set(only))
    return found.count(tuple(wanted))


def _parts(project: Project, paths: Iterable[str], size: int) -> Iterator[list[str]]:
    """Paths, so many at a time that their texts are about ``size`` characters."""
    part: list[str] = []
    length = 0
    for path in paths:
        part.append(path)
        length += len(project.sources[path].text)
        if length > size:
            yield part
            part, length = [], 0
    yield part


def _count_part(
    project: Project,
    taints: Taints,
    paths: Iterable[str],
    places: Places,
    are_lazy_linen: bool,
) -> None:
    resolver = Resolver(project, taints)
    judge = Judge(Inference(resolver, are_lazy_linen=are_lazy_linen))
    for path in paths:
        unit = project.unit(path)
        if unit is None:
            places.unreadable.append(path)
            continue
        counter = _Counter(unit, resolver, judge)
        places.references += counter.references()
        places.classes += counter.classes()
        places.constructors += counter.constructors()
        places.methods += counter.methods()
        places.lazy_classes.update(counter.lazy_classes())
        places.bases.update(key for scope in unit.classes for key in judge.bases(scope))


class _Counter:
    """Counts one file."""

    def __init__(self, unit: Unit, resolver: Resolver, judge: Judge) -> None:
        self.unit = unit
        self.resolver = resolver
        self.inference = judge.inference
        self.judge = judge
        self.is_ascii = unit.text.isascii()

    @cached_property
    def suspects(self) -> frozenset[str] | None:
        """Names that may lead to Linen; None when a star import may have bound any."""
        return suspects(self.unit, self.resolver.taints, self.resolver.project)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file, as Python counts them."""
        return _NEWLINE.split(self.unit.text)

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

    def methods(self) -> list[Method]:
        """Linen module methods called, or named without a call, on what may be a module."""
        found: list[Method] = []
        for call, scope, owner in self.unit.calls:
            if isinstance(call.func, ast.Attribute):
                place = self.place(call, call.func.attr, owner, True)
                found += self.method(call.func, scope, place, is_call=True)
        for node, scope, owner in self.unit.handles:
            place = self.place(node, node.attr, owner, True)
            found += self.method(node, scope, place, is_call=False)
        return found

    def method(
        self, node: ast.Attribute, scope: Scope, place: Place, *, is_call: bool
    ) -> Iterator[Method]:
        """What a method of a receiver counts as; common names on known receivers only."""
        values = self.inference.infer(node.value, scope)
        mixins = self.judge.mixins(values, node.attr)
        for if_base in (False, True) if mixins else (False,):
            verdict = Verdict.MAYBE if if_base else self.judge.receiver(values, node.attr)
            if verdict is Verdict.MAYBE and (node.attr in KNOWN_RECEIVER_METHODS or not is_call):
                continue
            kind = _KINDS[verdict, is_call]
            if kind:
                sure = replace(place, certain=verdict is not Verdict.MAYBE)
                declared = (
                    self.judge.annotated_classes(values)
                    if verdict is Verdict.STALE
                    else frozenset()
                )
                yield Method(kind, sure, mixins, if_base, declared)

    def constructors(self) -> list[tuple[str, Place]]:
        """Calls of the project's Linen classes, and of NNX classes that lack their ``rngs``."""
        found = []
        own = {name for name, one in self.unit.bindings if one.kind in ("class", "alias")}
        roots = self.suspects | own if self.suspects is not None else None
        for call, scope, owner in self.unit.named:
            if roots is not None and _root(call.func) not in roots:
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

    def lazy_classes(self) -> Iterator[ClassKey]:
        """Classes that this file makes lazy forms of: ``lazy(Net)``."""
        if not any(_is_ours(one) for one in self.unit.imports):
            return
        for call, scope, _ in self.unit.named:
            names = {
                one.name
                for one in self.resolver.resolve(call.func, scope)
                if isinstance(one, Symbol)
            }
            if names & LAZY_CLASSES:
                for one in self.resolver.resolve(call.args[0], scope) if call.args else ():
                    if isinstance(one, Definition):
                        yield class_key(one.scope)

    def place(self, node: ast.AST, symbol: str, scope: str, certain: bool) -> Place:
        """Where a node stands, in characters and from 1."""
        line, end_line = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        column = self.column(line, getattr(node, "col_offset", 0))
        end_column = self.column(end_line, getattr(node, "end_col_offset", 0))
        return Place(self.unit.path, line, column, end_line, end_column, symbol, scope, certain)

    def column(self, line: int, offset: int) -> int:
        """The 1-based character column of a UTF-8 byte offset."""
        if self.is_ascii:
            return offset + 1
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return len(text.encode()[:offset].decode(errors="replace")) + 1


_KINDS = {
    (Verdict.LINEN, True): "call",
    (Verdict.MAYBE, True): "call",
    (Verdict.STALE, True): "stale call",
    (Verdict.NO, True): "",
    (Verdict.LINEN, False): "handle",
    (Verdict.STALE, False): "stale handle",
    (Verdict.NO, False): "",
}


def _is_ours(node: ast.Import | ast.ImportFrom) -> bool:
    names = [one.name for one in node.names]
    owner = node.module if isinstance(node, ast.ImportFrom) else None
    return any(one.partition(".")[0] == "nnx_migrate" for one in ([owner] if owner else names))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
