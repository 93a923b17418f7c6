"""How many axes arrays have where the modules of a project call a class.

``jnp.swapaxes(x, 1, 2)`` says little of ``x``. Where every module that builds the class calls it with
``x.reshape(b, -1, c)``, it has three axes: one more weak proof of `ranks`, as strong as the project is
all that calls the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from nnx_migrate.abstract.values import Instance
from nnx_migrate.sizes.interpreter import TooDeep
from nnx_migrate.sizes.mentions import mentions_of
from nnx_migrate.sizes.ranks import Proofs, Rank, together
from nnx_migrate.sizes.runs import Question, Runs
from nnx_migrate.source.classes import ClassInfo

_METHOD = "__call__"
_DEPTH = 3  # longest chain of classes, each built by the next one

_Ranks = Mapping[str, int | None]  # of one call, by parameter


@lru_cache(maxsize=1 << 12)  # every attempt asks, and every class about those around it
def caller_ranks(runs: Runs, info: ClassInfo, depth: int = _DEPTH) -> Proofs:
    """Ranks of parameters of ``__call__`` that all calls agree on, by method and name."""
    try:
        calls = [
            one for builder in _builders(runs, info) for one in _calls(runs, builder, info, depth)
        ]
    except TooDeep:
        return {}
    agreed = {
        name: {one.get(name) for one in calls} for name in {name for one in calls for name in one}
    }
    return {
        (_METHOD, name): Rank(exact=rank)
        for name, ranks in agreed.items()
        if len(ranks) == 1 and (rank := next(iter(ranks))) is not None
    }


def _builders(runs: Runs, info: ClassInfo) -> list[ClassInfo]:
    """The other classes whose methods build one; none where it may be built elsewhere, too."""
    mentions = [*mentions_of(runs.project, info.name)]
    if any(one.cls is None or one.cls is info or one.call is None for one in mentions):
        return []
    names = {one.cls.name for one in mentions if one.cls is not None}
    known = [runs.project.linen[name] for name in sorted(names & runs.project.linen.keys())]
    return known if len(known) == len(names) else []


def _calls(runs: Runs, builder: ClassInfo, info: ClassInfo, depth: int) -> list[_Ranks]:
    """Every call that a class makes of another, with what is known of its own arguments."""
    known = runs.of(builder, Question()).interpreter.ranks.together()
    if depth > 1:
        known = together(known, caller_ranks(runs, builder, depth - 1))
    return [*_intersections(runs, builder, Question(ranks=frozenset(known.items())), info)]


def _intersections(
    runs: Runs, builder: ClassInfo, question: Question, info: ClassInfo
) -> Iterator[_Ranks]:
    interpreter = runs.of(builder, question).interpreter
    for uses in interpreter.root.records.values():
        for use in uses:
            if isinstance(use.module, Instance) and use.module.info is info:
                interpreter.ranks.method = use.entry
                arrays = {name: interpreter.array(one) for name, one in use.arguments.items()}
                ranks = {name: None if one is None else one.rank for name, one in arrays.items()}
                yield ranks if use.method == _METHOD else dict.fromkeys(ranks)
