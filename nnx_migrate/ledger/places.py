"""Places as the parts of a count find them, one part of the project after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nnx_migrate.ledger.data import Count, Place
from nnx_migrate.ledger.verdicts import ClassKey


@dataclass(frozen=True)
class Method:
    """A method that is called or named on a value.

    Attributes:
      kind: "call", "handle", "stale call" or "stale handle".
      mixins: classes that the value may be of, and that only a Linen class below them makes modules.
      if_base: with mixins: whether it counts where one of them is a base of a Linen class, or
        where none is.
      annotated_classes: NNX classes that annotations say the value is of; where the project also makes their
        lazy forms, it may be one of those.
    """

    kind: str
    place: Place
    mixins: frozenset[ClassKey] = frozenset()
    if_base: bool = False
    annotated_classes: frozenset[ClassKey] = frozenset()


@dataclass
class Places:
    """What the parts of a count found.

    Attributes:
      bases: Linen classes and what they inherit from.
      lazy_classes: classes whose lazy form is made somewhere.
    """

    references: list[Place] = field(default_factory=list)
    methods: list[Method] = field(default_factory=list)
    constructors: list[tuple[str, Place]] = field(default_factory=list)
    classes: list[Place] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    bases: set[ClassKey] = field(default_factory=set)
    lazy_classes: set[ClassKey] = field(default_factory=set)

    def count(self, paths: tuple[str, ...]) -> Count:
        """All of it, now that every class below a mixin is known."""
        return Count(
            references=_sort(self.references),
            call_sites=self._methods("call"),
            handles=self._methods("handle"),
            stale=self._methods("stale call"),
            stale_handles=self._methods("stale handle"),
            constructors=_sort(place for state, place in self.constructors if state == "linen"),
            stale_constructors=_sort(place for state, place in self.constructors if state == "nnx"),
            classes=_sort(self.classes),
            missing_lazy_forms=self._missing_lazy_forms(),
            paths=paths,
            unreadable=tuple(sorted(self.unreadable)),
        )

    def _methods(self, kind: str) -> tuple[Place, ...]:
        return _sort(
            one.place
            for one in self.methods
            if one.kind == kind
            and (not one.mixins or one.if_base is not one.mixins.isdisjoint(self.bases))
            and (not one.annotated_classes or not one.annotated_classes <= self.lazy_classes)
        )

    def _missing_lazy_forms(self) -> frozenset[str]:
        """Classes on which annotations promise Linen's methods, and whose lazy form nobody makes."""
        stale = (
            one.annotated_classes - self.lazy_classes for one in self.methods if "stale" in one.kind
        )
        return frozenset(name for keys in stale for *_, name in keys)


def _sort(places: Iterable[Place]) -> tuple[Place, ...]:
    return tuple(sorted(places))
