"""What a comparison did not exercise: collections, random streams and modes that no run reached."""

from __future__ import annotations

from collections.abc import Iterator

from nnx_migrate.parity.case import ParityCase
from nnx_migrate.parity.checks.base import few
from nnx_migrate.parity.checks.modes import pairs
from nnx_migrate.parity.evaluation.measure import FORWARD, INPUT_GRADIENTS
from nnx_migrate.parity.evaluation.mode_runs import ARGUMENT, FIELD
from nnx_migrate.parity.evaluation.results import Numbers, SideResult
from nnx_migrate.parity.training.steps import SPECS

_SHOWN = 3


def coverage_gaps(
    case: ParityCase, linen: SideResult, nnx: SideResult, rng_differs: bool
) -> Iterator[str]:
    """Yield a line for each that did not change, was not drawn or not run, with what would do it.

    Where the check `rng` failed, that says which streams only one side draws from.
    """
    if any(FORWARD in one for side in (linen, nnx) for one in (side.errors, side.skip_reasons)):
        return  # nothing ran, and the check `forward` says so
    runs = [(linen.first, nnx.first)]
    runs += [(one.first, other.first) for one, other in pairs(linen, nnx)]
    names = [path.split("/", 1)[0] for path in linen.shapes]
    for name in dict.fromkeys([*names, *case.collections]):
        if name != "params":
            yield from _collection(name, case, linen, nnx, runs)
    yield from _dropped_sows(case, linen, nnx)
    yield from _streams(case, linen, nnx, runs, rng_differs)
    if linen.names and SPECS in linen.skip_reasons:
        reason = linen.skip_reasons[SPECS]
        yield f"specs: {reason}: only names of axes are compared, no shardings and no constraints"
    for where, errors in (("", linen.errors), *_errors_of_modes(linen)):
        if INPUT_GRADIENTS in errors:
            error = errors[INPUT_GRADIENTS]
            yield f"gradients with respect to inputs{where}: Linen itself cannot: {error}"
    reasons: dict[str, list[str]] = {}
    for text, reason in linen.fixed_arguments.items():
        reasons.setdefault(reason, []).append(text)
    for reason, texts in reasons.items():
        yield f"modes: only {', '.join(texts)} ({reason})"
    for run in nnx.modes:
        if run.missing:
            yield f"modes: not with {run.mode.name} ({run.missing})"


def _errors_of_modes(linen: SideResult) -> Iterator[tuple[str, dict[str, str]]]:
    return ((f" with {run.mode.name}", run.errors) for run in linen.modes)


def _collection(
    name: str,
    case: ParityCase,
    linen: SideResult,
    nnx: SideResult,
    runs: list[tuple[Numbers, Numbers]],
) -> Iterator[str]:
    def is_in(path: str) -> bool:
        return path.split("/", 1)[0] == name

    here = [path for numbers, _ in runs for path in numbers.collections]
    paths = list(dict.fromkeys(path for path in (*linen.shapes, *here) if is_in(path)))
    changing_paths = {
        path for ours, theirs in runs for path in _changing_paths(ours) & _changing_paths(theirs)
    }
    still = [path for path in paths if path not in changing_paths]
    if paths and not still:
        return
    if len(still) < len(paths):
        paths_text = few(still, _SHOWN)
        yield f"collections: {len(still)} of {len(paths)} in {name} never changed: {paths_text}"
        return
    yield f"collections: {name} never changed: {_advice(name, case, linen, nnx)}"


def _dropped_sows(case: ParityCase, linen: SideResult, nnx: SideResult) -> Iterator[str]:
    """What a side sows into collections that no run asked for."""
    collections = {
        *case.collections,
        *(name for run in linen.modes for name in run.mode.collections),
    }
    collections |= {path.split("/", 1)[0] for path in linen.shapes}
    names: dict[str, list[str]] = {}
    for path in dict.fromkeys((*linen.sown, *nnx.sown)):
        collection, _, name = path.partition("/")
        if collection not in collections:
            names.setdefault(collection, []).append(name)
    for collection, found in names.items():
        side = "Linen" if any(one.startswith(f"{collection}/") for one in linen.sown) else "NNX"
        yield (
            f"collections: no run asked for {collection}, into which {side} sows "
            f"{', '.join(found)}: add collections=({collection!r},)"
        )


def _changing_paths(numbers: Numbers) -> set[str]:
    return numbers.collections.keys() - set(numbers.constant_collections)


def _streams(
    case: ParityCase,
    linen: SideResult,
    nnx: SideResult,
    runs: list[tuple[Numbers, Numbers]],
    differs: bool,
) -> Iterator[str]:
    ours = {name for numbers, _ in runs for name in numbers.stream_names}
    theirs = {name for _, numbers in runs for name in numbers.stream_names}
    for stream in case.rngs:
        if stream != "params" and stream not in ours | theirs:
            yield f"rng: {stream} was never drawn from: {_advice(None, case, linen, nnx)}"
        elif stream != "params" and stream not in ours & theirs and not differs:
            side = "Linen" if stream in ours else "NNX"
            yield f"rng: {stream} was drawn from on the {side} side only, without effect"
    for run in linen.modes:
        for stream in run.mode.streams:
            yield (
                f"rng: {stream} has no seed in this case, so with {run.mode.name} both sides drew a "
                f"key of parity's: add rngs={{{stream!r}: 0}}"
            )


def _advice(collection: str | None, case: ParityCase, linen: SideResult, nnx: SideResult) -> str:
    """What would exercise it, as far as the call and the module tell."""
    ways = [f"pass {run.mode.name}" for run in nnx.modes if run.missing]
    for text, reason in linen.fixed_arguments.items():
        if reason != ARGUMENT and "=" in text:
            ways.append(f"{'build the module with' if reason == FIELD else 'pass'} {_other(text)}")
    mutable = {*case.collections, *(name for run in linen.modes for name in run.mode.collections)}
    if collection is not None and collection not in mutable:
        ways.append(f"add collections=({collection!r},)")
    if not ways:
        ways = [
            f"pass {_other(text)}" for text, why in linen.fixed_arguments.items() if why == ARGUMENT
        ]
    ran = [one.mode.name for one, _ in pairs(linen, nnx)]
    attempts = [f"not with {' or '.join(ran)} either"] if ran else []
    found = "; ".join([*attempts, *([" or ".join(ways)] if ways else [])])
    return found or "the call has no boolean argument that would switch it"


def _other(text: str) -> str:
    """``train=True`` of ``train=False``."""
    name, _, value = text.partition("=")
    return f"{name}={value != 'True'}"
