"""Checks ``specs`` and ``specs_after_step``: names, specs and placement of every array."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from nnx_migrate.parity.checks.base import blocked_check, by_path, check_of, one_sided_lines
from nnx_migrate.parity.evaluation.results import SideResult
from nnx_migrate.parity.evaluation.shardings import ArrayLayout, Layouts, show, unit_axes
from nnx_migrate.parity.report import Check


def specs(linen: SideResult, nnx: SideResult) -> Check:
    """Compare how the training state is laid out before the first step.

    Without a mesh or rules, only what axes are named: what Linen names has to be named alike.
    """
    not_run_check = blocked_check("specs", linen, nnx) or _no_names_check(
        "specs", linen.layouts, nnx.layouts
    )
    if not_run_check is not None and not_run_check.status == "not_run" and linen.names:
        return _of_names(not_run_check, linen, nnx)
    if not_run_check is not None:
        return not_run_check
    ours, theirs = linen.layouts, nnx.layouts
    bare = _bare(ours)
    notes = [f"without logical axis names: {', '.join(bare)}"] if bare else []
    units = unit_axes(ours)
    if units:
        notes.append(f"in specs, but of size 1 on this mesh: {', '.join(units)}")
    failures = _differing(ours, theirs)
    return check_of("specs", len(ours.keys() & theirs.keys()), failures, notes)


def _of_names(not_run_check: Check, linen: SideResult, nnx: SideResult) -> Check:
    """Compare the names of axes alone."""
    failures = [
        f"{path}: names: Linen {_text(names)}, NNX {_text(nnx.names.get(path))}"
        for path, names in linen.names.items()
        if path in nnx.shapes and nnx.names.get(path) != names
    ]
    found = check_of("specs", len(linen.names.keys() & nnx.names.keys()), failures)
    notes = (f"only the names of axes: {line}" for line in not_run_check.details)
    return dataclasses.replace(found, details=(*found.details, *notes))


def specs_after_step(linen: SideResult, nnx: SideResult) -> Check:
    """Compare it after a step; on the NNX side the step must not have changed any spec."""
    stage = "specs_after_step"
    ours, theirs = linen.layouts_after, nnx.layouts_after
    not_run_check = blocked_check(stage, linen, nnx) or _no_names_check(
        stage, linen.layouts, nnx.layouts
    )
    if not_run_check is not None:
        return not_run_check
    failures = [
        *_differing(ours, theirs),
        *(f"NNX: {line}" for line in _changes(nnx.layouts, theirs)),
    ]
    notes = [
        f"placed by the compiler, alike on both sides: {line}"
        for line in _layout_changes(linen.layouts, ours)
    ]
    return check_of(stage, len(ours.keys() & theirs.keys()), failures, notes)


def _no_names_check(stage: str, ours: Layouts, theirs: Layouts) -> Check | None:
    """Where neither side names any axis, every spec is empty and proves nothing."""
    if any(one.names is not None for one in (*ours.values(), *theirs.values())):
        return None
    reason = "no array has logical axis names on either side"
    return Check(stage, "not_run", 0, (reason,))


def _differing(ours: Layouts, theirs: Layouts) -> Iterator[str]:
    """Yield one line per array that the two sides lay out differently, and per array of one side.

    Nothing to compare is a difference.
    """
    yield from one_sided_lines(ours, theirs)
    common_paths = by_path(ours.keys() & theirs.keys())
    for path in common_paths:
        line = _difference(ours[path], theirs[path])
        if line:
            yield f"{path}: {line}"
    if not common_paths:
        yield "nothing was compared"


def _difference(linen: ArrayLayout, nnx: ArrayLayout) -> str | None:
    if linen.names != nnx.names:
        return f"names: Linen {_names(linen)}, NNX {_names(nnx)}"
    for what in ("spec", "sharding", "placed"):
        ours, theirs = getattr(linen, what), getattr(nnx, what)
        if ours != theirs:
            return f"{what} of {_names(linen)}: Linen {show(ours)}, NNX {show(theirs)}"
    return None


def _changes(before: Layouts, after: Layouts) -> Iterator[str]:
    """Yield one line per array whose names or spec a training step changed."""
    for path in before.keys() & after.keys():
        old, new = before[path], after[path]
        if old.names != new.names:
            yield f"{path}: names {_names(old)} before the step, {_names(new)} after it"
        elif old.spec != new.spec:
            yield f"{path}: {show(old.spec)} before the step, {show(new.spec)} after it"


def _layout_changes(before: Layouts, after: Layouts) -> Iterator[str]:
    """Yield one line per array that a step left in another place: the compiler chose so."""
    for path, old in before.items():
        if path in after and old.placed != after[path].placed:
            yield f"{path}: {show(old.placed)} before the step, {show(after[path].placed)} after it"


def _bare(layouts: Mapping[str, ArrayLayout]) -> tuple[str, ...]:
    """Arrays without logical axis names; scalars need none."""
    return tuple(path for path, one in layouts.items() if one.names is None and one.rank > 0)


def _names(layout: ArrayLayout) -> str:
    return _text(layout.names)


def _text(names: tuple[str | None, ...] | None) -> str:
    return "no names" if names is None else f"({', '.join(name or '-' for name in names)})"
