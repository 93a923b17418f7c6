"""Linen's automatic submodule names, decided without running the code.

Linen counts per class name, in construction order, over the whole compact method. A name is fixed
when the count is known (``Dense_0``), an f-string when it grows evenly with a loop index
(``Dense_{i}``; a loop over a sequence gets one), and else left to run time (``run_time_names.py``, or
``nnm.LinenNames``, which counts as Linen does in ``__init__`` and in the call).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.loop_indexes import Indexes
from nnx_migrate.rewrite.classes.reading.flow import Branch, Build, Exit, Loop, Step, binds, builds
from nnx_migrate.source.walking import each


@dataclass(frozen=True)
class Name:
    """The attribute of an item, as an expression in ``__init__`` and in the call.

    Exactly one is set: ``literal``; ``text`` (an f-string over loop variables); ``explicit`` (the
    user's own expression); ``counter_argument`` (argument of the run-time counter: a quoted class name, or
    the expression that is called). With a ``stem`` it is no name of Linen's, which numbers it at run time; with
    ``linen`` that is Linen's name.
    """

    literal: str | None = None
    text: str | None = None
    explicit: ast.expr | None = None
    counter_argument: ast.expr | str | None = None
    stem: str | None = None  # the attribute without its numbers
    linen: str | None = None


@dataclass(frozen=True)
class Count:
    """How many submodules of a class have a number: ``start`` plus ``factor * text`` for every term.

    A term's text is the variable of an enclosing loop, or an expression over fields.
    """

    start: int
    terms: tuple[tuple[int, str], ...] = ()

    def plus(self, number: int) -> Count:
        """``number`` more."""
        return Count(self.start + number, self.terms)

    def text(self) -> str:
        """The count as an expression."""
        parts = [name if factor == 1 else f"{factor} * {name}" for factor, name in self.terms]
        if self.start or not parts:
            parts.append(str(self.start))
        return " + ".join(parts)


@dataclass(frozen=True)
class Numbering:
    """Attribute names by id of call.

    ``is_even``: no condition on the call decides which of them are built.
    """

    names: dict[int, Name]
    indexes: Indexes
    is_even: bool


_Counts = dict[str, Count | None]


def names_of(
    steps: Sequence[Step],
    dynamic: frozenset[int],
    before: Mapping[str, Count] | None = None,
    *,
    goes_on: bool = False,
    used_names: Collection[str] = (),
    lengths: Mapping[int, str] = MappingProxyType({}),
) -> Numbering:
    """The attribute name of every submodule, parameter and variable in ``steps``.

    Args:
      steps: the whole compact method.
      dynamic: ids of branches whose condition is only known in the call.
      before: by class, what a base class has numbered before.
      goes_on: every number is only known at run time: the steps are those of a function that goes
        on where its caller is.
      used_names: names that a loop's index cannot have.
      lengths: how many items expressions have that loops run over, by their ids, as text over fields.

    Raises:
      Refused: after ``before`` a number is only known at run time.
    """
    found = _Counting(dynamic, Indexes(used_names, lengths))
    found.run(steps, dict(before or {}))
    unnamed = _nameless_items(steps)
    open_classes = any(item.site is not None and item.site.class_name is None for item in unnamed)
    result: dict[int, Name] = {}
    shared = {_class(item) for item in unnamed} if goes_on else numbered_classes(steps)
    uncertain = {_class(item) for item in unnamed if found.names.get(id(item.call)) is None}
    uncertain |= shared
    open_classes |= "" in shared
    if before and numbered_classes(steps):
        raise _after_base(next(item for item in builds(steps) if item.is_in_scope), "submodule")
    lexical: dict[str, int] = {}
    for item in builds(steps):
        if item.is_in_scope:
            continue
        if item.kind is not ItemKind.SITE or item.name is not None:
            if item.name is not None:
                result[id(item.call)] = explicit(item.name)
            continue
        kind = _class(item)
        number = lexical.get(kind, 0)
        lexical[kind] = number + 1
        uneven = kind in found.conditional or open_classes or kind in uncertain
        if before and uneven:
            raise _after_base(item, kind)
        if kind in found.conditional and kind in shared:
            raise ClassRefused(
                item.call,
                f"a condition on the call and a function that builds too number this {kind}",
                "name it",
                "names",
            )
        if kind in found.conditional and item.free_of_variables:
            name = Name(literal=f"{kind}_{number}")
            if found.names.get(id(item.call)) != name and not found.is_alike(item, steps):
                raise _unknown_number(item)
            result[id(item.call)] = name
        elif kind in found.conditional and item.may_stay_uncalled:
            result[id(item.call)] = _only_name(item, found.names, kind in uncertain or open_classes)
        elif open_classes or kind in uncertain:
            counted = item.call.func if item.site.class_name is None else f"{kind!r}"  # type: ignore[union-attr]
            result[id(item.call)] = Name(counter_argument=counted)
        else:
            result[id(item.call)] = found.names[id(item.call)]
    return Numbering(result, found.indexes, not found.conditional)


def with_other_attributes(names: Mapping[int, Name], others: Mapping[str, str]) -> dict[int, Name]:
    """The attributes of items by id, elsewhere where the class has Linen's name for something else.

    Args:
      others: the attributes of those, by Linen's name.
    """
    found = dict(names)
    for key, one in names.items():
        if one.literal is not None and one.literal in others:
            found[key] = replace(one, literal=others[one.literal], linen=one.literal)
    return found


def _after_base(item: Item, kind: str) -> ClassRefused:
    return ClassRefused(
        item.call,
        f"which number Linen gives this {kind} after those of the base class is not known",
        "name it",
        "inheritance",
    )


def _only_name(item: Item, names: Mapping[int, Name], is_uncertain: bool) -> Name:
    """The name of a submodule that a condition on the call builds, where no other may have it.

    Raises:
      Refused: which number Linen gives to it, or to another one of its class, only the call knows.
    """
    name = names.get(id(item.call))
    if name is None or is_uncertain or sum(one == name for one in names.values()) > 1:
        raise _unknown_number(item)
    return name


def _unknown_number(item: Item) -> ClassRefused:
    return ClassRefused(
        item.call,
        "a condition on the call decides which number Linen gives to submodules of this class",
        "name it",
        "names",
    )


def _class(item: Item) -> str:
    assert item.site is not None
    return item.site.class_name or ""


def explicit(name: ast.expr) -> Name:
    """The user's own name: a literal string, or an expression."""
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        return Name(literal=name.value)
    return Name(explicit=name)


class _Counting:
    """One pass over the steps in evaluation order."""

    def __init__(self, dynamic: frozenset[int], indexes: Indexes) -> None:
        self.dynamic = dynamic
        self.indexes = indexes
        self.names: dict[int, Name] = {}
        self.conditional: set[str] = set()  # classes built under a condition on the call
        # The tests around each submodule, by their text and the side that it stands on.
        self.tests: dict[int, dict[tuple[str, bool], ast.expr]] = {}
        self.jumps: list[_Counts] = []  # counts where a round of the loop around ends early

    def run(self, steps: Sequence[Step], counts: _Counts) -> tuple[_Counts, bool]:
        """Counts after ``steps`` and whether the end is reached."""
        for step in steps:
            match step:
                case Build(item=item):
                    self._build(item, counts)
                case Exit(node=node):
                    if isinstance(node, ast.Break | ast.Continue):
                        self.jumps.append(dict(counts))
                    return counts, False
                case Branch():
                    counts, reached = self._branch(step, counts)
                    if not reached:
                        return counts, False
                case Loop():
                    counts = self._loop(step, counts)
        return counts, True

    def is_alike(self, item: Item, steps: Sequence[Step]) -> bool:
        """Whether one condition, which stays the same, is around all of its class: where it is built, all are."""
        kind = _class(item)
        tests = [
            self.tests.get(id(one.call), {})
            for one in _nameless_items(steps)
            if _class(one) == kind
        ]
        looped = (
            one for loop in steps if isinstance(loop, Loop) for one in _nameless_items(loop.body)
        )
        if len(tests[0]) != 1 or any(one.keys() != tests[0].keys() for one in tests):
            return False
        words = {name.id for test in tests[0].values() for name in each(test, ast.Name)}
        changed = {name for one in binds(steps) for name in (*one.defines, *one.mutates)}
        return words.isdisjoint(changed) and all(_class(one) != kind for one in looped)

    def _build(self, item: Item, counts: _Counts) -> None:
        if item.kind is not ItemKind.SITE or item.name is not None or item.is_in_scope:
            return
        kind = _class(item)
        count = counts.get(kind, Count(0))
        if count is None:
            self.names.pop(id(item.call), None)
            return
        if count.terms:
            name = Name(text=f'f"{kind}_{{{count.text()}}}"')
        else:
            name = Name(literal=f"{kind}_{count.start}")
        self.names[id(item.call)] = name
        counts[kind] = count.plus(1)

    def _branch(self, step: Branch, counts: _Counts) -> tuple[_Counts, bool]:
        first, one = self.run(step.body, dict(counts))
        second, other = self.run(step.orelse, dict(counts))
        if id(step) in self.dynamic:
            self.conditional |= {_class(i) for i in _nameless_items((*step.body, *step.orelse))}
            for side, holds in ((step.body, True), (step.orelse, False)):
                for item in _nameless_items(side):
                    tests = self.tests.setdefault(id(item.call), {})
                    tests[ast.dump(step.test), holds] = step.test
        if not (one and other):
            return (first, True) if one else (second, other)
        return {kind: _join(first, second, kind) for kind in first | second}, True

    def _loop(self, step: Loop, counts: _Counts) -> _Counts:
        index = self.indexes.of(step)  # before those of loops inside, which have other names
        around, self.jumps = self.jumps, []
        trial, _ = self.run(step.body, dict(counts))
        ends, self.jumps = [trial, *self.jumps], []
        start: _Counts = dict(counts)
        after: _Counts = dict(counts)
        for kind in dict.fromkeys(kind for one in ends for kind in one):
            before, end = counts.get(kind, Count(0)), trial.get(kind, Count(0))
            if all(one.get(kind, Count(0)) == before for one in ends):
                continue
            even = before is not None and end is not None and before.terms == end.terms
            # With ``continue`` or ``break`` there is no index: how often a round builds differs.
            if not even or index is None:
                start[kind] = after[kind] = None
                continue
            assert before is not None
            assert end is not None
            growth = end.start - before.start
            start[kind] = Count(before.start, (*before.terms, (growth, index.name)))
            after[kind] = _after(before, growth, index.rounds)
        self.run(step.body, start)
        self.jumps = around
        return after


def _after(before: Count, growth: int, rounds: int | str | None) -> Count | None:
    """The count after a loop that adds ``growth`` in each of its rounds."""
    if rounds is None:
        return None
    if isinstance(rounds, int):
        return before.plus(growth * rounds)
    return Count(before.start, (*before.terms, (growth, rounds)))


def _join(first: _Counts, second: _Counts, kind: str) -> Count | None:
    one, other = first.get(kind, Count(0)), second.get(kind, Count(0))
    return one if one == other else None


def _nameless_items(steps: Sequence[Step]) -> list[Item]:
    return [
        item
        for item in builds(steps)
        if item.kind is ItemKind.SITE and item.name is None and not item.is_in_scope
    ]


def numbered_classes(steps: Sequence[Step]) -> frozenset[str]:
    """Class names under which functions that the steps call number submodules."""
    sites = (item.site for item in builds(steps) if item.is_in_scope)
    return frozenset(name for site in sites if site is not None for name in site.numbers)
