"""Which classes get a constructor argument for what the initial call has.

That is the whole shape of an input, or a fact: whether an argument is given, whether a flag is set,
which dtype it has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.data import Wants
from nnx_migrate.rewrite.decide import Decisions
from nnx_migrate.sizes import ClassSizes, Extras
from nnx_migrate.source.growth import reachable

_ROUNDS = 4  # classes that a cut hid from the first decision show what they want in a later one


@dataclass
class ExtraArguments:
    """Learns from decision to decision.

    A class that is refused all the same, and wants nothing more, gets nothing. Neither does one whose
    callers are refused because they cannot pass it on: they build it as the Linen class it is.

    Args:
      builds: which classes each class builds.
      open_fields: by class, fields that build modules of classes that nobody knows.
    """

    builds: Mapping[str, Collection[str]] = field(default_factory=dict)
    open_fields: Mapping[str, frozenset[str]] = field(default_factory=dict)
    wants: dict[str, Wants] = field(default_factory=dict)
    without_extras: set[str] = field(default_factory=set)
    # Facts left out, by class
    unpassable_facts: dict[str, frozenset[str]] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)  # classes that may do without facts
    explicit_classes: frozenset[str] = frozenset()  # by the decision before
    rounds: int = 0

    @property
    def arguments(self) -> Mapping[str, Wants]:
        """By class, what it gets."""
        return {name: one for name, one in self.wants.items() if name not in self.without_extras}

    def by_class(self) -> Mapping[str, Extras]:
        """What is decided of classes beside their code, by name."""
        granted, none = self.arguments, frozenset[str]()
        found: dict[str, Extras] = {}
        for name in {*granted, *self.unpassable_facts, *self.open_fields}:
            wants, unpassed = granted.get(name, Wants()), self.unpassable_facts.get(name, none)
            open_fields = self.open_fields.get(name, none)
            found[name] = Extras(wants.shapes, wants.facts - unpassed, unpassed, open_fields)
        return found

    def learn(self, decisions: Decisions, sizes: Mapping[str, ClassSizes]) -> bool:
        """Take in a decision. Returns whether to decide again with other arguments."""
        before = (dict(self.arguments), dict(self.unpassable_facts))
        self.optional |= {name for name, one in sizes.items() if one.untold}
        refused = decisions.refusals.keys() & sizes.keys()
        helped = {name for name in refused if self._deny(sizes[name], sizes)}
        losses = (self.explicit_classes & decisions.refusals.keys()) - helped
        stuck = self._stuck(decisions) - helped
        self.without_extras |= self.arguments.keys() & (stuck | self._built_by(losses))
        # What holds lazy submodules waits for these: they may want something.
        whole = {name for name, one in decisions.conversions.items() if not one.holds_lazy}
        self.explicit_classes |= whole
        if self.rounds < _ROUNDS:
            for name, refusal in decisions.refusals.items():
                if refusal.wants != Wants() and name not in self.without_extras:
                    self.wants[name] = self.wants.get(name, Wants()) | refusal.wants
        self.rounds += 1
        return (dict(self.arguments), dict(self.unpassable_facts)) != before

    def _deny(self, caller: ClassSizes, sizes: Mapping[str, ClassSizes]) -> bool:
        """Spare a caller the facts that it cannot pass on, where what it builds does without."""
        if len(caller.problems) > len(caller.unpassable_facts):
            return False
        ways = [_receivers(child, argument, sizes) for child, argument in caller.unpassable_facts]
        found = [way for way in ways if any(name in self.optional for name, _ in way)]
        for name, parameter in (one for way in found for one in way):
            self.unpassable_facts[name] = self.unpassable_facts.get(name, frozenset()) | {parameter}
        return bool(found)

    def _stuck(self, decisions: Decisions) -> set[str]:
        """Refused classes that have all they want."""
        return {
            name
            for name, refusal in decisions.refusals.items()
            if (known := self.wants.get(name)) is not None and known | refusal.wants == known
        }

    def _built_by(self, names: Collection[str]) -> set[str]:
        """What the named classes build, at any remove."""
        first = (one for name in names for one in self.builds.get(name, ()))
        return reachable(first, lambda one: self.builds.get(one, ()))


def _receivers(
    name: str, argument: str, sizes: Mapping[str, ClassSizes]
) -> frozenset[tuple[str, str]]:
    """The classes that get a fact by this argument of a class, with the parameters it is about."""
    own = sizes.get(name, ClassSizes())
    facts = {one.name: one.argument for one in own.new_arguments if one.fact is not None}
    parameter = facts.get(argument)
    if parameter is None:
        return frozenset()
    inner = (
        _receivers(str(site.symbol), key, sizes)
        for site in own.sites.values()
        for key, text in site.sizes.items()
        if site.symbol in sizes and re.search(rf"\b{argument}\b", text)
    )
    return frozenset({(name, parameter)}).union(*inner)
