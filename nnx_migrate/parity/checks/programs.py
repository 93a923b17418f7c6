"""Check ``program``: whether both sides lower to the same StableHLO, as text or by rules."""

from __future__ import annotations

from dataclasses import dataclass

from nnx_migrate.parity.checks.base import checked
from nnx_migrate.parity.evaluation.results import SideResult
from nnx_migrate.parity.programs import canonical, graphs
from nnx_migrate.parity.programs.unit_mesh_axes import without_unit_axes
from nnx_migrate.parity.report import Check


@dataclass(frozen=True)
class Programs:
    """How far the programs agree: ``same`` text, the rules needed, or where they part."""

    same: bool
    rules: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


def agreement(linen: SideResult, nnx: SideResult) -> Programs:
    """Compare the programs that both sides have."""
    rules: list[str] = []
    parts: list[str] = []
    for name in sorted(linen.programs.keys() & nnx.programs.keys()):
        ours, theirs = linen.programs[name], nnx.programs[name]
        if ours == theirs:
            continue
        try:
            needed = graphs.equal_by_rules(ours, theirs)
        except ValueError as error:
            parts.append(f"{name}: {' '.join(str(error).split())[:300]}")
            continue
        if needed is None:
            shorter = without_unit_axes(ours), without_unit_axes(theirs)
            parts.append(f"{name}: {canonical.first_line_apart(*shorter)}")
        else:
            rules += [rule for rule in needed if rule not in rules]
    return Programs(not rules and not parts, tuple(rules), tuple(parts))


def program(linen: SideResult, nnx: SideResult, found: Programs) -> Check:
    """The check of what was found; programs that part are for the verdict to judge."""
    failures = [
        f"{name}: there is no NNX program to compare with"
        for name in linen.programs
        if name not in nnx.programs
    ]
    if linen.untraced:
        return Check("program", "not_run", 0, (linen.untraced,))
    if not linen.programs:
        failures.append("nothing was compared")
    leaves = len(linen.programs.keys() & nnx.programs.keys())
    notes = [f"not the same program: {line}" for line in found.parts]
    notes += [f"the same by {', '.join(found.rules)}"] if found.rules else []
    return checked("program", leaves, failures, notes)
