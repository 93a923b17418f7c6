"""What the report says of constructor arguments that remain, and what evidence would remove them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nnx_migrate.model import ArgumentResult, SizeArgument
from nnx_migrate.rewrite.classes.writing.document import described, speaks_for_itself
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.sizes.evidence import ClassEvidence, ProjectEvidence
from nnx_migrate.source.classes import ClassInfo


def argument_results(
    cls: ClassInfo,
    arguments: Sequence[SizeArgument],
    sizes: ClassSizes,
    evidence: ProjectEvidence | None,
) -> tuple[ArgumentResult, ...]:
    """The arguments that the conversion of a class adds, one by one."""
    own = evidence.of(cls) if evidence is not None else None
    return tuple(
        ArgumentResult(one.name, described(one), _remedy(cls, one, sizes, own)) for one in arguments
    )


def _remedy(
    cls: ClassInfo, one: SizeArgument, sizes: ClassSizes, evidence: ClassEvidence | None
) -> str:
    """What to record so that the argument goes away; why nothing would, where that is so."""
    name = cls.node.name
    if speaks_for_itself(one):
        return "none: NNX builds before the first call, and only callers know what they pass"
    if one.fact is not None:
        return "none: it tells apart initial calls that build different submodules"
    reaching = f" with calls that reach {one.submodule}" if one.submodule else ""
    if evidence is None:
        return f"run `nnx-migrate record` on code that builds {name}{reaching}"
    reasons = sorted(set(_reasons(one, sizes, evidence)))
    if not reasons:
        return f"no recorded call has it: record code that builds {name}{reaching}"
    return (
        f"record {name} with other numbers, one at a time: so far {reasons[0]}"
        f" ({len(evidence.recorded.instances)} instances)"
    )


def _reasons(one: SizeArgument, sizes: ClassSizes, evidence: ClassEvidence) -> Iterator[str]:
    """Why what was recorded at the places that take the argument gives no expression."""
    for site in sizes.sites.values():
        texts = (re.findall(r"\w+", text) for text in site.sizes.values())
        place = evidence.place_of(site.call) if any(one.name in text for text in texts) else None
        for (where, *_, axis), size in evidence.recorded.sizes.items():
            if (
                where == place
                and place is not None
                and axis == (-1 if one.axis is None else one.axis)
            ):
                yield size.reason or f"{size.expression} cannot be read in __init__"
