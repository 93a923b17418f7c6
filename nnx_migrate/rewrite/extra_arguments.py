"""Which classes get a constructor argument for what the initial call has.

That is the whole shape of an input, or a fact: whether an argument is given, whether a flag is set,
which dtype it has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.data import Wants
from nnx_migrate.rewrite.decide import Decisions

_ROUNDS = 4  # classes that a cut hid from the first decision show what they want in a later one


@dataclass
class ExtraArguments:
    """Learns from decision to decision.

    A class that is refused all the same, and wants nothing more, gets nothing. Neither does one whose
    callers are refused because they cannot pass it on: they build it as the Linen class it is.

    Args:
      builds: which classes each class builds.
    """

    builds: Mapping[str, Collection[str]] = field(default_factory=dict)
    wanted: dict[str, Wants] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    converted: frozenset[str] = frozenset()  # by the decision before
    rounds: int = 0

    @property
    def granted(self) -> Mapping[str, Wants]:
        """By class, what it gets."""
        return {name: one for name, one in self.wanted.items() if name not in self.denied}

    @property
    def shapes(self) -> Mapping[str, frozenset[str]]:
        """By class, the parameters whose shape it gets."""
        return {name: one.shapes for name, one in self.granted.items() if one.shapes}

    @property
    def facts(self) -> Mapping[str, frozenset[str]]:
        """By class, the parameters of which it is told what the initial call has."""
        return {name: one.facts for name, one in self.granted.items() if one.facts}

    @property
    def dtypes(self) -> Mapping[str, frozenset[tuple[str, int]]]:
        """By class, the parameters whose dtype it gets, with the nodes that read it."""
        return {name: one.dtypes for name, one in self.granted.items() if one.dtypes}

    def learn(self, decisions: Decisions) -> bool:
        """Take in a decision. Returns whether to decide again with other arguments."""
        before = dict(self.granted)
        lost = self.converted - decisions.converted.keys()
        self.denied |= self.granted.keys() & (self._stuck(decisions) | self._built_by(lost))
        self.converted |= decisions.converted.keys()
        if self.rounds < _ROUNDS:
            for name, refusal in decisions.refused.items():
                if refusal.wants != Wants() and name not in self.denied:
                    self.wanted[name] = self.wanted.get(name, Wants()) | refusal.wants
        self.rounds += 1
        return dict(self.granted) != before

    def _stuck(self, decisions: Decisions) -> set[str]:
        """Refused classes that have all they want."""
        return {
            name
            for name, refusal in decisions.refused.items()
            if (known := self.wanted.get(name)) is not None and known | refusal.wants == known
        }

    def _built_by(self, names: Collection[str]) -> set[str]:
        """What the named classes build, at any remove."""
        found: set[str] = set()
        todo = list(names)
        while todo:
            new = set(self.builds.get(todo.pop(), ())) - found
            found |= new
            todo += new
        return found
