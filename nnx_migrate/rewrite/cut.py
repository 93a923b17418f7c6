"""The cut between Linen and NNX: which classes must stay Linen because others do.

A class whose base stays Linen stays Linen, and so does the base of a class that stays. What stays can
construct an explicit class by ``lazy(Class)``. An explicit class constructs what becomes lazy by its
name alone, and has nothing of what stays as a value (in a field, below ``nn.remat``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes import ClassRefusal
from nnx_migrate.rewrite.links import Links
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.sizes.inference.reachability import ELSEWHERE
from nnx_migrate.sizes.mentions import mentions_of
from nnx_migrate.source.project import Project


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
    fixed_classes: frozenset[str] = frozenset(),
) -> tuple[Cut, ...]:
    """Candidates that must join ``staying``, directly or through others (a fixed point).

    A class that several force is cut by the nearest of them, the first by name. What stays builds
    candidates by ``lazy(Class)``; candidates build none of the ``fixed_classes``, which do not even become
    lazy. What stays can inherit from ``interfaces``.
    """
    cuts: dict[str, Cut] = {}
    frontier = deque(sorted(staying))
    while frontier:
        name = frontier.popleft()
        for other, reason in _forced_cuts(links, name, interfaces, fixed_classes):
            if other in candidates and other not in staying and other not in cuts:
                cuts[other] = Cut(other, name, reason)
                frontier.append(other)
    return tuple(cuts.values())


def _forced_cuts(
    links: Links, name: str, interfaces: frozenset[str], fixed_classes: frozenset[str]
) -> Iterator[tuple[str, str]]:
    for other in links.heirs.get(name, ()):
        yield other, f"its base {name} stays Linen"
    for base in sorted({*links.bases.get(name, ())} - interfaces):
        yield base, f"{name}, which inherits from it, stays Linen"
    for other in links.builders.get(name, ()):
        if name in fixed_classes or name in links.through.get(other, ()):
            does, how = ("has", ", as a value") if name in links.holds[other] else ("builds", "")
            yield other, f"it {does} {name}, which stays Linen{how}"


# ---- classes with submodules that only other methods than ``__call__`` reach
# Linen's init of such a class by itself makes no parameters for them, the NNX module always has
# them. Where every place that builds the class stands in an explicit class whose initial call calls one
# of those methods, nobody sees a difference::
#
#     class Decoder(nn.Module):
#         def setup(self):
#             self.head = nn.Dense(10)
#         def __call__(self, x): ...
#         def logits(self, x):
#             return self.head(x)
#
#     class Model(nn.Module):
#         def setup(self):
#             self.decoder = Decoder()
#         def __call__(self, x):
#             return self.decoder.logits(self.decoder(x))

Methods = Mapping[int, frozenset[str]]  # of what a call builds, by its id


def unreachable_classes(
    project: Project, sizes: Mapping[str, ClassSizes], pending: Collection[str]
) -> Iterator[tuple[str, ClassRefusal]]:
    """Classes of ``pending`` that something builds without ever reaching all of their submodules."""
    sized = [one for one in sorted(pending) if sizes[one].elsewhere]
    methods = _called_methods(sizes, pending) if sized else {}
    for name in sized:
        for one in sizes[name].elsewhere:
            if not _always_calls(project, name, one.methods, methods):
                recipe = "call it in __call__ too, or build it in a class of its own"
                yield name, ClassRefusal(one.call, ELSEWHERE, recipe, "sizes")
                break


def _called_methods(sizes: Mapping[str, ClassSizes], pending: Collection[str]) -> Methods:
    """The methods that are called on what each place builds, in all classes that inherit the place."""
    found: dict[int, frozenset[str]] = {}
    for name in pending:
        for key, site in sizes[name].sites.items():
            found[key] = site.methods & found.get(key, site.methods)
    return found


def _always_calls(project: Project, name: str, targets: frozenset[str], methods: Methods) -> bool:
    """Whether every mention of a class builds it, and calls one of ``targets`` in its initial call."""
    mentions = [*mentions_of(project, name)]
    return bool(mentions) and all(
        one.call is not None and not targets.isdisjoint(methods.get(id(one.call), ()))
        for one in mentions
    )
