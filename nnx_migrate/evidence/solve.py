"""Which expression over fields and input dimensions a size is.

A size is observed once per trace: as recorded, and with one source (an integer field, an axis of an
input) made two and three times as large. An expression is an answer only when it gives every
observed value, of all instances and all traces, and no other expression over the same sources does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from nnx_migrate.evidence.forms import Form, Number, candidates

INDEX = "index"  # how many submodules the same place built before: the count of a loop
_FEW = 8  # a literal beyond so many times a source is no design of a person
_MANY = 8  # responsive sources beyond this: only expressions of three are tried
_MOST = 14  # beyond this none is tried


@dataclass(frozen=True)
class Observation:
    """One size in one trace of one instance.

    ``changes`` are the sources that differ from the recorded instance.
    """

    instance: int
    changes: frozenset[str]
    sources: Mapping[str, Number]
    value: int


@dataclass(frozen=True)
class Answer:
    """The expression of a size, or why there is none.

    ``alternatives`` are expressions over sources that only ever moved together with those of
    ``expression``: any of them gives every observed size.
    """

    expression: str | None
    alternatives: tuple[str, ...] = ()
    reason: str = ""


def solve(observations: Sequence[Observation], opaque: Mapping[int, str] | None = None) -> Answer:
    """Find the expression that all observations agree on.

    ``opaque`` names, by instance, the type of a part that was not written down: no trace changes the
    numbers in it.
    """
    instances = _by_instance(observations)
    if not instances:
        return Answer(None, reason="it was only seen with changed fields or inputs")
    richest = max(instances.values(), key=len)
    responsive = _responsive(richest)
    if len(responsive) > _MOST:
        return Answer(None, reason=f"{len(responsive)} sources move it")
    for count in range(min(len(responsive), 3 if len(responsive) > _MANY else 4) + 1):
        found = [
            list(_fitting_forms(names, richest, observations))
            for names in combinations(responsive, count)
        ]
        groups = [forms for forms in found if forms]
        if groups:
            return _best_answer(groups, instances, opaque or {})
    return Answer(None, reason=f"no expression over {', '.join(responsive) or 'nothing'} fits")


def _by_instance(observations: Sequence[Observation]) -> dict[int, list[Observation]]:
    """Observations by instance, each as recorded first; instances without that are left out."""
    found: dict[int, list[Observation]] = {}
    for one in sorted(observations, key=lambda one: (one.instance, len(one.changes))):
        if one.instance in found or not one.changes:
            found.setdefault(one.instance, []).append(one)
    return found


def _responsive(rows: Sequence[Observation]) -> list[str]:
    """Sources whose change, alone or with others, came with another size.

    In a loop a round is compared with the same round of the recorded instance.
    """
    bases = {row.sources.get(INDEX): row.value for row in rows if not row.changes - {INDEX}}
    found: dict[str, None] = {INDEX: None} if len(set(bases.values())) > 1 else {}
    alone: dict[str, bool] = {}  # whether a source moved the size without any other
    for row in rows:
        changes = row.changes - {INDEX}
        if not changes or row.sources.get(INDEX) not in bases:
            continue
        is_different = row.value != bases[row.sources.get(INDEX)]
        if is_different:
            found.update(dict.fromkeys(sorted(changes)))
        if len(changes) == 1:
            (name,) = changes
            alone[name] = alone.get(name, False) or is_different
    return [
        name
        for name in found
        if alone.get(name, True) and not isinstance(rows[0].sources.get(name, False), bool)
    ]


def _fitting_forms(
    names: Sequence[str], rows: Sequence[Observation], everything: Sequence[Observation]
) -> Iterator[Form]:
    """Distinct forms over exactly ``names`` that give every observed size."""
    data = [(row.sources, row.value) for row in rows]
    if any(name not in sources for name in names for sources, _ in data):
        return
    texts: set[str] = set()
    for form in candidates(names, data):
        if form.text not in texts and all(form.value(o.sources) == o.value for o in everything):
            texts.add(form.text)
            yield form


def _best_answer(
    groups: list[list[Form]],
    instances: Mapping[int, list[Observation]],
    opaque: Mapping[int, str],
) -> Answer:
    """The best of the forms that fit, one group per set of sources."""
    unsure = [forms for forms in groups if len(forms) > 1]
    if unsure:
        texts = " and ".join(form.text for form in unsure[0][:3])
        return Answer(None, reason=f"{texts} fit alike")
    forms = sorted((forms[0] for forms in groups), key=_preference)
    for form in forms:
        doubt = _source_doubt(form, instances) or _opacity_doubt(form, instances, opaque)
        if doubt is not None:
            return Answer(None, reason=doubt)
    return Answer(forms[0].text, tuple(form.text for form in forms[1:]))


def _preference(form: Form) -> tuple[int, int, str]:
    """The class's own fields before inputs, then the shorter text."""
    return form.text.count(".shape["), len(form.text), form.text


def _source_doubt(form: Form, instances: Mapping[int, list[Observation]]) -> str | None:
    """Why a literal of the form may be a source that no trace could change."""
    for literal in form.literals:
        suspects: set[str] | None = None
        for rows in instances.values():
            changeable = {name for row in rows for name in row.changes}
            here = {
                name
                for name, value in rows[0].sources.items()
                if name not in changeable and _alike(literal, value)
            }
            suspects = here if suspects is None else suspects & here
        if suspects:
            return (
                f"the {literal} in {form.text} may be {min(suspects)}, which no trace could change"
            )
    return None


def _opacity_doubt(
    form: Form, instances: Mapping[int, list[Observation]], opaque: Mapping[int, str]
) -> str | None:
    """Why a literal of the form may come from something that was not written down.

    A small factor is the code's own.
    """
    least = 2 if not form.terms and not form.product and not form.divisors else _FEW + 1
    literals = [one for one in form.literals if one >= least]
    if not literals or not instances.keys() <= opaque.keys():
        return None
    where = min(opaque[one] for one in instances)
    return f"the {literals[0]} in {form.text} may stand in a {where}, which is not written down"


def _alike(literal: int, value: Number) -> bool:
    """Whether a number may come from a source: equal, or a few times as large or small."""
    if isinstance(value, bool) or value <= 1:
        return False
    larger, smaller = max(literal, value), min(literal, value)
    return larger % smaller == 0 and larger // smaller <= _FEW
