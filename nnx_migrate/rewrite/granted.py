"""Which classes get the whole shape of an input as a constructor argument."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.decide import Decisions

_ROUNDS = 4  # classes that a cut hid from the first decision show what they want in a later one


@dataclass
class WantedShapes:
    """Learns from decision to decision.

    A class that is refused all the same gets nothing. Neither does one whose callers are refused
    because they cannot pass the shape on: they build it as the Linen class it is.

    Args:
      builds: which classes each class builds.
    """

    builds: Mapping[str, Collection[str]] = field(default_factory=dict)
    wanted: dict[str, frozenset[str]] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    converted: frozenset[str] = frozenset()  # by the decision before
    rounds: int = 0

    @property
    def granted(self) -> Mapping[str, frozenset[str]]:
        """By class, the parameters whose shape it gets."""
        return {name: one for name, one in self.wanted.items() if name not in self.denied}

    def learn(self, decisions: Decisions) -> bool:
        """Take in a decision. Returns whether to decide again with other arguments."""
        before = dict(self.granted)
        lost = self.converted - decisions.converted.keys()
        self.denied |= self.granted.keys() & (decisions.refused.keys() | self._built_by(lost))
        self.converted |= decisions.converted.keys()
        if self.rounds < _ROUNDS:
            for name, refusal in decisions.refused.items():
                if refusal.wants and name not in self.denied:
                    self.wanted[name] = refusal.wants
        self.rounds += 1
        return dict(self.granted) != before

    def _built_by(self, names: Collection[str]) -> set[str]:
        """What the named classes build, at any remove."""
        found: set[str] = set()
        todo = list(names)
        while todo:
            new = set(self.builds.get(todo.pop(), ())) - found
            found |= new
            todo += new
        return found
