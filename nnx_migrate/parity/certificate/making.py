"""Make a certificate of a finished run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import numpy as np

from nnx_migrate.parity.certificate.data import (
    Certificate,
    CheckStatus,
    Count,
    Digest,
    Leaf,
    Number,
    RunContext,
    Side,
    Spec,
)
from nnx_migrate.parity.certificate.provenance import provenance
from nnx_migrate.parity.certificate.score import mutation_score
from nnx_migrate.parity.comparison_result import ComparisonResult
from nnx_migrate.parity.evaluation.results import Numbers, SideResult
from nnx_migrate.parity.evaluation.shardings import show
from nnx_migrate.parity.values import Array, Arrays, ShapeDtype, shape_dtype

# Texts of errors may hold addresses and the names of scratch folders: other ones in every run.
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_SCRATCH = re.compile(r"nnx-migrate-(case|trees)-\w+")


def certificate(context: RunContext, result: ComparisonResult) -> Certificate:
    """The certificate of a run; whatever its verdict is, it certifies that."""
    report = result.report
    return Certificate(
        command=context.command,
        provenance=provenance(context.settings, result.platform, result.devices),
        sources=context.sources,
        verdict=report.verdict,
        ok=report.ok,
        model=report.model,
        mesh=report.mesh,
        checks=tuple(CheckStatus(c.name, c.status, Count(c.leaves)) for c in report.checks),
        modes=report.modes,
        rules_used=report.rules_used,
        not_checked=tuple(map(_repeatable, report.not_checked)),
        without_values=result.linen.skip_reasons.get("init_values", ""),
        linen=_side(result.linen),
        nnx=_side(result.nnx),
        mutation_score=mutation_score(),
    )


def _side(side: SideResult) -> Side:
    return Side(
        model=side.model,
        initial={
            path: _leaf(side.shapes[path], side.init_values.get(path)) for path in side.shapes
        },
        outputs=_leaves(side.first.outputs),
        gradients=_leaves(side.first.gradients),
        after_steps=_leaves(side.state),
        specs=_specs(side),
        programs=dict(_programs(side)),
        losses=dict(_losses(side)),
    )


def _leaf(kind: ShapeDtype, value: Array | None) -> Leaf:
    found = None if value is None else Digest(hashlib.sha256(value.tobytes()).hexdigest())
    return Leaf(tuple(map(Count, kind.shape)), kind.dtype, found)


def _leaves(arrays: Arrays) -> dict[str, Leaf]:
    return {path: _leaf(shape_dtype(value), value) for path, value in arrays.items()}


def _specs(side: SideResult) -> dict[str, Spec]:
    after = side.layouts_after
    return {
        path: Spec(
            one.names,
            show(one.spec),
            show(one.placed),
            show(after[path].placed) if path in after else None,
        )
        for path, one in side.layouts.items()
    }


def _programs(side: SideResult) -> Iterator[tuple[str, Digest]]:
    """Hashes of the programs of every run."""
    runs = {"": side.programs, **{f" with {run.mode.name}": run.programs for run in side.modes}}
    for suffix, programs in runs.items():
        for name, text in programs.items():
            yield f"{name}{suffix}", Digest(hashlib.sha256(text.encode()).hexdigest())


def _losses(side: SideResult) -> Iterator[tuple[str, Number]]:
    """The loss under both keys of every run, and of the steps."""
    keys: dict[str, tuple[Numbers, Numbers]] = {"": (side.first, side.second)}
    keys |= {f" with {run.mode.name}": (run.first, run.second) for run in side.modes}
    for suffix, runs in keys.items():
        for number, run in enumerate(runs, 1):
            for name, value in run.loss.items():
                yield f"{name} under key {number}{suffix}", _number(value)
    for name, value in side.losses.items():
        yield name, _number(value)


def _number(value: Array) -> Number:
    """A loss, exactly; every floating-point type that has one fits into a float of Python."""
    return Number(float(np.asarray(value).astype(np.float64)).hex())


def _repeatable(line: str) -> str:
    return _SCRATCH.sub(r"nnx-migrate-\1", _ADDRESS.sub("0x...", line))
