"""Which classes get the whole shape of an input as a constructor argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.decide import Decisions

_ROUNDS = 4  # classes that a cut hid from the first decision show what they want in a later one


@dataclass
class WantedShapes:
    """Learns from decision to decision; a class that is refused all the same gets nothing."""

    wanted: dict[str, frozenset[str]] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    rounds: int = 0

    @property
    def granted(self) -> Mapping[str, frozenset[str]]:
        """By class, the parameters whose shape it gets."""
        return {name: one for name, one in self.wanted.items() if name not in self.denied}

    def learn(self, decisions: Decisions) -> bool:
        """Take in a decision. Returns whether to decide again with other arguments."""
        before = dict(self.granted)
        self.denied |= {name for name in self.granted if name in decisions.refused}
        if self.rounds < _ROUNDS:
            for name, refusal in decisions.refused.items():
                if refusal.wants and name not in self.denied:
                    self.wanted[name] = refusal.wants
        self.rounds += 1
        return dict(self.granted) != before
