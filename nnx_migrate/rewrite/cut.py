"""The cut between Linen and NNX: which classes must stay Linen because others do.

A class whose base stays Linen stays Linen, and so does the base of a class that stays. What stays can
construct an explicit class by ``lazy(Class)``; an explicit class constructs nothing that stays, and has
nothing of it as a value (in a field, below ``nn.remat``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.rewrite.links import Links


@dataclass(frozen=True)
class Cut:
    """A class that stays Linen because of another one."""

    name: str
    by: str
    reason: str


def cut(
    links: Links,
    staying: frozenset[str],
    candidates: frozenset[str],
    interfaces: frozenset[str] = frozenset(),
) -> tuple[Cut, ...]:
    """Candidates that must join ``staying``, directly or through others (a fixed point).

    A class that several force is cut by the nearest of them, the first by name. What stays builds
    candidates by ``lazy(Class)``; candidates build nothing that stays. It can inherit from ``interfaces``.
    """
    cuts: dict[str, Cut] = {}
    frontier = deque(sorted(staying))
    while frontier:
        name = frontier.popleft()
        for other, reason in _forced(links, name, interfaces):
            if other in candidates and other not in staying and other not in cuts:
                cuts[other] = Cut(other, name, reason)
                frontier.append(other)
    return tuple(cuts.values())


def _forced(links: Links, name: str, interfaces: frozenset[str]) -> Iterator[tuple[str, str]]:
    for other, bases in sorted(links.bases.items()):
        if name in bases:
            yield other, f"its base {name} stays Linen"
    for base in sorted({*links.bases.get(name, ())} - interfaces):
        yield base, f"{name}, which inherits from it, stays Linen"
    for other, built in sorted(links.builds.items()):
        if name in built:
            yield other, f"it builds {name}, which stays Linen"
    for other in sorted(links.shares.get(name, ())):
        yield other, f"{name}, which calls the same factory function, stays Linen"
    for other, held in sorted(links.holds.items()):
        if name in held:
            yield other, f"it has {name}, which stays Linen, as a value"
