"""Classes with submodules that only other methods than ``__call__`` reach.

Linen's init of such a class by itself makes no parameters for them, the NNX module always has
them. Where every place that builds the class stands in an explicit class whose initial call calls one
of those methods, nobody sees a difference::

    class Decoder(nn.Module):
        def setup(self):
            self.head = nn.Dense(10)
        def __call__(self, x): ...
        def logits(self, x):
            return self.head(x)

    class Model(nn.Module):
        def setup(self):
            self.decoder = Decoder()
        def __call__(self, x):
            return self.decoder.logits(self.decoder(x))
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from nnx_migrate.rewrite.classes import ClassRefusal
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.sizes.inference.setup_reach import ELSEWHERE
from nnx_migrate.sizes.mentions import mentions_of
from nnx_migrate.source.project import Project

Methods = Mapping[int, frozenset[str]]  # of what a call builds, by its id


def unreached(
    project: Project, sizes: Mapping[str, ClassSizes], pending: Collection[str]
) -> Iterator[tuple[str, ClassRefusal]]:
    """Classes of ``pending`` that something builds without ever reaching all of their submodules."""
    sized = [one for one in sorted(pending) if sizes[one].elsewhere]
    methods = _called(sizes, pending) if sized else {}
    for name in sized:
        for one in sizes[name].elsewhere:
            if not _always_calls(project, name, one.methods, methods):
                recipe = "call it in __call__ too, or build it in a class of its own"
                yield name, ClassRefusal(one.call, ELSEWHERE, recipe, "sizes")
                break


def _called(sizes: Mapping[str, ClassSizes], pending: Collection[str]) -> Methods:
    """The methods that are called on what each place builds, in all classes that inherit the place."""
    found: dict[int, frozenset[str]] = {}
    for name in pending:
        for key, site in sizes[name].sites.items():
            found[key] = site.methods & found.get(key, site.methods)
    return found


def _always_calls(project: Project, name: str, wanted: frozenset[str], methods: Methods) -> bool:
    """Whether every mention of a class builds it, and calls one of ``wanted`` in its initial call."""
    mentions = [*mentions_of(project, name)]
    return bool(mentions) and all(
        one.call is not None and not wanted.isdisjoint(methods.get(id(one.call), ()))
        for one in mentions
    )
