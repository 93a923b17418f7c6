"""What the report says of submodules that only some recorded instances build."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.model import ClassResult, ConditionalResult, Finding, Outcome
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import walk


def conditional_results(cls: ClassInfo, sizes: ClassSizes) -> Iterator[ConditionalResult]:
    """Every submodule that only some recorded instances build, also in the file of a base."""
    paths = {id(node): owner.module.path for owner in cls.mro for node in walk(owner.node)}
    for one in sizes.conditional:
        yield ConditionalResult(
            paths[id(one.call)],
            one.call.lineno,
            one.call.col_offset + 1,
            ast.unparse(one.call),
            one.built,
            one.instances,
            one.condition,
            one.source,
            one.note,
        )


def conditional_findings(one: ClassResult) -> Iterator[Finding]:
    """What was recorded of submodules whose condition the code does not tell before a call."""
    for place in one.conditional:
        if place.source != "open":
            continue
        text = f"{place.built} of {place.instances} recorded instances build {place.submodule}"
        known = f"exactly where {place.condition}" if place.condition else place.note
        if one.outcome is Outcome.REFUSED:
            known += "; a field that says so would let it be built in __init__"
        yield Finding(
            "evidence", place.path, place.line, place.column, one.outcome, f"{text}: {known}"
        )
