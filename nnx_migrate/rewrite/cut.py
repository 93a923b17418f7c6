"""The cut between Linen and NNX: which classes must stay Linen because others do.

A class whose base stays Linen stays Linen, and so does the base of a class that stays; a class that
a Linen class constructs stays Linen (an NNX child inside a Linen parent runs without error and
loses its parameters). A converted class may construct one that stays, through ``ToNNX``, by its
name: one that it only has as a value (in a field, below ``nn.remat``) keeps it Linen.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.rewrite.links import Links
from nnx_migrate.source.project import Project, Scope

_BRIDGES = ("flax.nnx.bridge.ToNNX", "nnx_migrate.nn.ToNNX")


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
    lazily: frozenset[str] = frozenset(),
    interfaces: frozenset[str] = frozenset(),
) -> tuple[Cut, ...]:
    """Candidates that must join ``staying``, directly or through others (a fixed point).

    A class that several force is cut by the nearest of them, the first by name. What stays can build
    those of ``lazily`` by ``lazy(Class)``; these build nothing that stays. It can inherit from ``interfaces``.
    """
    cuts: dict[str, Cut] = {}
    frontier = deque(sorted(staying))
    while frontier:
        name = frontier.popleft()
        for other, reason in _forced(links, name, lazily, interfaces):
            if other in candidates and other not in staying and other not in cuts:
                cuts[other] = Cut(other, name, reason)
                frontier.append(other)
    return tuple(cuts.values())


def behind_bridges(project: Project) -> frozenset[str]:
    """Linen classes that the project already builds inside ``nnx.bridge.ToNNX(...)``."""
    found = set()
    for module in project.modules.values():
        if "ToNNX" not in module.text:
            continue
        scope = Scope(module)
        for node in module.nodes:
            inner = node.args[0] if isinstance(node, ast.Call) and node.args else None
            if not isinstance(node, ast.Call) or not isinstance(inner, ast.Call):
                continue
            if project.resolve(node.func, scope) in _BRIDGES:
                found.add(project.resolve(inner.func, scope) or "")
    return frozenset(found & project.linen.keys())


def bridged(
    links: Links, converted: frozenset[str], behind: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Classes that stay Linen and run behind ``ToNNX``.

    They are those that converted classes build or that are ``behind`` a bridge already, and what
    these build or inherit from in turn.
    """
    found: set[str] = set()
    frontier = [*behind, *(one for name in converted for one in links.builds.get(name, ()))]
    while frontier:
        name = frontier.pop()
        if name in converted or name in found:
            continue
        found.add(name)
        frontier += [*links.builds.get(name, ()), *links.bases.get(name, ())]
    return frozenset(found)


def _forced(
    links: Links, name: str, lazily: frozenset[str], interfaces: frozenset[str]
) -> Iterator[tuple[str, str]]:
    for other, bases in sorted(links.bases.items()):
        if name in bases:
            yield other, f"its base {name} stays Linen"
    for base in sorted({*links.bases.get(name, ())} - interfaces):
        yield base, f"{name}, which inherits from it, stays Linen"
    for built in sorted(links.builds.get(name, ())):
        if built not in lazily:
            yield built, f"{name}, which builds it, stays Linen"
    for other in sorted(lazily):
        if name in links.builds.get(other, ()):
            yield other, f"it builds {name}, which stays Linen"
    for other in sorted(links.shares.get(name, ())):
        yield other, f"{name}, which calls the same factory function, stays Linen"
    for other, held in sorted(links.holds.items()):
        if name in held:
            yield other, f"it has {name}, which stays Linen, as a value"
