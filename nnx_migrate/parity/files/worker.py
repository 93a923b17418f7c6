"""One side of a file case: ``python -m nnx_migrate.parity.files.worker JOB...``.

Loads the case file with this side's tree first on ``sys.path``, calls only this side's functions,
and leaves the side's result, or its error, in the job's directory.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnx_migrate.model import MigrationMap
from nnx_migrate.parity.case_settings import fault
from nnx_migrate.parity.files.case_file import (
    CaseError,
    CaseFile,
    call_arguments,
    case_errors,
    describe_error,
    load_case,
    place,
)
from nnx_migrate.parity.files.process import MOST_SIMULATED, Job, simulate
from nnx_migrate.parity.files.trees import roots_of
from nnx_migrate.parity.report import peak_rss_bytes

if TYPE_CHECKING:
    from nnx_migrate.parity.case import ParityCase
    from nnx_migrate.parity.evaluation.results import SideResult


def main(words: list[str]) -> int:
    """Run the jobs whose files are the words; return 0 when all left a result."""
    return max(_work(Path(word)) for word in words)


def _work(file: Path) -> int:
    job: Job = pickle.loads(file.read_bytes())
    try:
        settings = _run(job)
    except CaseError as error:
        return _tell(job, str(error))
    except Exception as error:  # noqa: BLE001 - user code may raise anything; it becomes the line
        function = getattr(error, _FUNCTION, "the model")
        return _tell(job, describe_error(function, error))
    return _tell(job, None, settings)


# The attribute that marks an exception with the case file's function that raised it.
_FUNCTION = "nnx_migrate_function"


def _run(job: Job) -> dict[str, Any]:
    """Run one side; return the settings that the comparison reads, ready for JSON."""
    sys.path[:0] = [str(path) for path in job.path_entries]
    case = load_case(job.case)
    settings = {**case.settings, **job.overrides}
    _require_devices(job, settings.get("mesh"))
    with case_errors("inputs()"):
        inputs, kwargs = call_arguments(case.inputs(), case.path)
    from nnx_migrate.parity.case import BadCase, ParityCase
    from nnx_migrate.parity.evaluation import results
    from nnx_migrate.parity.instantiation.fields import CannotCross

    initial = None
    if case.initial is not None:
        with case_errors("initial()"):
            initial = call_arguments(case.initial(), case.path)
    loss = None if case.loss is None else _named("loss()", case.loss)
    try:
        parity_case = ParityCase(
            inputs=inputs, kwargs=kwargs, initial=initial, loss=loss, **settings
        )
    except BadCase as error:
        raise CaseError(f"{case.path.name}: CASE: {error}") from error
    try:
        side = (_run_before if job.side == "before" else _run_after)(job, case, parity_case)
        results.save(side, job.result)
    except BadCase as error:
        own = job.side == "before" and not isinstance(error, CannotCross) and error.__cause__
        where = place(own) if own else ""
        raise CaseError(f"{error}{f' ({where})' if where else ''}") from error
    return {
        "rngs": dict.fromkeys(parity_case.rngs, 0),  # only the names are read
        "collections": list(parity_case.collections),
        "path_map": dict(parity_case.path_map or {}),
        "tolerance": parity_case.tolerance,
        "stateless": parity_case.stateless,
        "mesh": dict(parity_case.mesh) if isinstance(parity_case.mesh, Mapping) else None,
        "compiled": not side.eager_reason,
        "modes": [dataclasses.asdict(one.mode) for one in side.modes],
    }


def _run_before(job: Job, case: CaseFile, parity_case: ParityCase) -> SideResult:
    from nnx_migrate.parity.sides.linen import evaluate_linen

    whole = dataclasses.replace(parity_case, linen=_linen_module(case))
    if case.nnx is None:
        _describe(job, whole)
    return evaluate_linen(whole, submodules=job.submodules)


def _run_after(job: Job, case: CaseFile, parity_case: ParityCase) -> SideResult:
    from nnx_migrate.parity.sides.nnx import evaluate_nnx

    if case.nnx is not None:
        whole = dataclasses.replace(parity_case, nnx=_from_case(case.nnx, case.path))
    else:
        whole = _from_description(job, parity_case)
    return evaluate_nnx(whole, submodules=job.submodules)


def _require_devices(job: Job, mesh: Any) -> None:
    """Make the devices a mesh needs, or say that it does not fit."""
    if not mesh:
        return
    if not isinstance(mesh, Mapping):
        raise CaseError(f"CASE: mesh: expected {{axis: size}}, found {type(mesh).__name__}")
    if (line := fault({"mesh": mesh})) is not None:
        raise CaseError(f"CASE: {line}")
    device_count = math.prod(mesh.values())
    if device_count > MOST_SIMULATED:
        raise CaseError(
            f"CASE: mesh: expected at most {MOST_SIMULATED} simulated devices, found {device_count}"
        )
    if job.devices is None:
        # XLA reads this when the first device is asked for, which a case file rarely does.
        simulate(os.environ, device_count)
    import jax

    found = len(jax.devices())
    if device_count > found:
        shape = ",".join(f"{axis}:{size}" for axis, size in mesh.items())
        raise CaseError(
            f"mesh {shape} needs {device_count} devices, {found} are there: make the mesh smaller or "
            f"pass devices={device_count}"
        )


def _linen_module(case: CaseFile) -> Any:
    from flax import linen

    with case_errors("linen()"):
        module = case.linen()
    if not isinstance(module, linen.Module):
        raise CaseError(
            f"linen() returned a {type(module).__qualname__}: expected a flax.linen.Module "
            "(does before= name the Linen tree?)"
        )
    return module


def _describe(job: Job, case: ParityCase) -> None:
    from nnx_migrate.parity.case import initial_call, mesh_of, surroundings
    from nnx_migrate.parity.instantiation import fields

    assert case.linen is not None
    first = initial_call(case)
    with surroundings(case, mesh_of(case)):
        description = fields.describe(
            case.linen, first.inputs, first.kwargs, tuple(case.rngs), case.method
        )
    found = _digests(job, _map_of(job))
    job.description.write_bytes(pickle.dumps((description, found)))


def _map_of(job: Job) -> MigrationMap:
    from nnx_migrate.parity.instantiation.migration_map import BadMap, load_map

    try:
        return load_map(job.map) if job.map else MigrationMap()
    except BadMap as error:
        raise CaseError(str(error)) from error


def _digests(job: Job, content: MigrationMap) -> dict[str, str]:
    from nnx_migrate.parity.instantiation.map_files import digests
    from nnx_migrate.parity.instantiation.migration_map import BadMap

    try:
        return digests(content, roots_of(job.path_entries), job.map or Path())
    except BadMap as error:
        raise CaseError(str(error)) from error


def _from_case(function: Callable[[Any], Any], path: Path) -> Callable[[Any], Any]:
    """Return the case's ``nnx``; that it raises, or gives no module, says nothing about the migration."""
    from flax import nnx

    from nnx_migrate.parity.case import BadCase

    def construct(rngs: Any) -> Any:
        try:
            with case_errors("nnx(rngs)"):
                module = function(rngs)
        except CaseError as error:
            raise BadCase(str(error)) from error
        if not isinstance(module, nnx.Module):
            raise BadCase(f"{path.name}: nnx(rngs) returned {_kind(module)}")
        return module

    return construct


def _kind(module: Any) -> str:
    """What is there in place of an NNX module, and what to do."""
    from flax import linen

    expected = "expected a flax.nnx.Module"
    if module is None:
        return f"None: {expected}: end it with `return Model(..., rngs=rngs)`"
    name = type(module).__qualname__
    if isinstance(module, linen.Module):
        return f"the Linen module {name}: {expected} (does after= name the NNX tree?)"
    return f"a {name}: {expected}"


def _from_description(job: Job, parity_case: ParityCase) -> ParityCase:
    """Complete the case with a constructor built from what the before side described."""
    from nnx_migrate.parity.instantiation.fields import Description
    from nnx_migrate.parity.instantiation.instantiate import build
    from nnx_migrate.parity.instantiation.map_files import require_own
    from nnx_migrate.parity.instantiation.migration_map import BadMap, path_map_of

    description: Description
    description, before = pickle.loads(job.description.read_bytes())
    migration_map = _map_of(job)
    used = {description.class_name, *(call.class_name for call in description.calls)}

    def construct(rngs: Any) -> Any:
        return build(description, rngs, map=migration_map)

    after = _digests(job, migration_map)
    try:
        require_own(migration_map, used, before, after, job.map or Path())
    except BadMap as error:
        raise CaseError(str(error)) from error

    path_map = {**path_map_of(migration_map, description.calls), **(parity_case.path_map or {})}
    return dataclasses.replace(parity_case, nnx=construct, path_map=path_map or None)


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark exceptions of a user's function with its name, for the error line."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not hasattr(error, _FUNCTION):
                setattr(error, _FUNCTION, name)
            raise

    return call


def _tell(job: Job, error: str | None, settings: Mapping[str, Any] | None = None) -> int:
    outcome: dict[str, Any] = {
        "error": error,
        "settings": settings,
        "peak_rss_bytes": peak_rss_bytes(),
    }
    if error is None:
        from nnx_migrate.parity.evaluation.running import platform

        outcome["ran_on"] = platform()
    job.outcome.write_text(json.dumps(outcome), encoding="utf-8")
    return 0 if error is None else 2


def _end_with_parent() -> None:
    """End this process and what it started when the one that waits for it is gone, however it went.

    That one holds the other end of standard input and writes nothing. The user's code reads an empty one.
    """
    if os.getpgid(0) != os.getpid():
        return  # started by hand
    line, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        os.read(line, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    _end_with_parent()
    sys.exit(main(sys.argv[1:]))
