"""Submodules that compact methods leave to their first calls, because only a call says whether there is one.

::

    if x.shape != y.shape:
        x = nn.Conv(self.width, (1, 1), name="project")(x)  # lazy, where no constructor knows the shapes
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nnx_migrate.rewrite.classes import ClassRefusal


@dataclass
class Waiting:
    """Learns from refusal to refusal.

    Attributes:
      without_extras: classes that get no further arguments for what the initial call has; others may be told.
      calls: by class, ids of the calls that build them.
      hopeless: classes that cannot be converted with such submodules either.
    """

    without_extras: frozenset[str]
    calls: dict[str, frozenset[int]] = field(default_factory=dict)
    hopeless: set[str] = field(default_factory=set)

    def learn(
        self, refusals: dict[str, ClassRefusal], refused_classes: frozenset[str]
    ) -> frozenset[str]:
        """Those of the ``refused_classes`` to decide again; their refusals are gone."""
        again = {name for name in refused_classes if self._asks(name, refusals[name])}
        for name in refused_classes - again:
            refusal = refusals[name]
            refusals[name] = replace(refusal, wants=replace(refusal.wants, lazy=frozenset()))
        for name in again:
            del refusals[name]
        return frozenset(again)

    def _asks(self, name: str, refusal: ClassRefusal) -> bool:
        """Whether other submodules than before may help."""
        before = self.calls.pop(name, frozenset())
        more = refusal.wants.lazy - before
        if refusal.wants.facts and name not in self.without_extras:
            more = frozenset()
        if name not in self.hopeless and more:
            self.calls[name] = before | more
            return True
        self.hopeless |= {name} if before else set()
        return bool(before)
