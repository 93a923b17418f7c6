"""Run one side of a file case in a process of its own, and bring its result or its error back."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from nnx_migrate.parity.files.case_file import CaseError
from nnx_migrate.parity.modes import Mode

Side = Literal["before", "after"]


@dataclass(frozen=True)
class Job:
    """What a worker needs. ``directory`` is shared by both sides of one case.

    ``overrides`` replace keys of the case file's ``CASE``. ``devices`` is the number of simulated
    CPU devices, or None to take what the mesh needs.
    """

    side: Side
    case: Path
    path_entries: tuple[Path, ...]
    directory: Path
    map: Path | None = None
    devices: int | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    submodules: bool = False  # also record every submodule's output, to locate a difference

    @property
    def result(self) -> Path:
        """The directory of this side's result."""
        return self.directory / self.side

    @property
    def outcome(self) -> Path:
        """The file that says how this side ended."""
        return self.directory / f"{self.side}.json"

    @property
    def description(self) -> Path:
        """The before side's description of its Linen module, read by the after side."""
        return self.directory / "module.pickle"


@dataclass(frozen=True)
class SideRun:
    """How a side went: the case's settings that the comparison reads, its peak memory, and what it ran on."""

    settings: Mapping[str, Any]
    peak_rss_bytes: int
    platform: str
    devices: int


def run_side(job: Job, timeout: float | None = None) -> SideRun:
    """Run one side, whose result then lies in ``job.result``.

    The process has the same interpreter; JAX_PLATFORMS is cpu unless set. Raises
    :class:`CaseError` (one line, naming the side) when it fails, dies or outlives ``timeout``
    seconds; it and its children are gone in every case.
    """
    return _side_run(job, _work([job], timeout), _log(job))


def run_sides(jobs: Sequence[Job]) -> list[SideRun | CaseError]:
    """Run the same side of many cases of the same trees in one process, one after the other."""
    if not jobs:
        return []
    code = _work(jobs, None)
    runs: list[SideRun | CaseError] = []
    for job in jobs:
        try:
            runs.append(_side_run(job, code, _log(jobs[0])))
        except CaseError as error:
            runs.append(error)
    return runs


def _work(jobs: Sequence[Job], timeout: float | None) -> int:
    """Run a worker to its end and return its exit code; its output goes to the first job's log."""
    files = []
    for job in jobs:
        job.directory.mkdir(parents=True, exist_ok=True)
        files.append(job.directory / f"{job.side}-job.pickle")
        files[-1].write_bytes(pickle.dumps(job))
    command = [sys.executable, "-P", "-m", "nnx_migrate.parity.files.worker", *map(str, files)]
    with (
        _log(jobs[0]).open("wb") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # it ends when nobody holds the other end (worker.py)
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(jobs[0]),
            start_new_session=True,
        ) as process,
    ):
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise CaseError(f"{jobs[0].side} side: not finished after {timeout:g} s") from error
        except BaseException:
            _end(process)
            raise


def _log(job: Job) -> Path:
    return job.directory / f"{job.side}.log"


def _side_run(job: Job, code: int, log: Path) -> SideRun:
    outcome = _outcome(job, code, log)
    if outcome["error"] is not None:
        raise CaseError(f"{job.side} side: {outcome['error']}")
    settings = outcome["settings"]
    modes = tuple(Mode(**one) for one in settings["modes"])
    peak = int(outcome["peak_rss_bytes"])
    return SideRun({**settings, "modes": modes}, peak, *outcome["ran_on"])


def _environment(job: Job) -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[3])  # the workers run this very package
    python_path = os.environ.get("PYTHONPATH")
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([root, python_path] if python_path else [root])
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # the user's trees stay as they are
    environment.setdefault("JAX_PLATFORMS", "cpu")
    if job.devices is not None:
        simulate(environment, job.devices)
    return environment


MOST_SIMULATED = 4096  # starting takes seconds already, and grows with the square


# Threads per simulated device. Reductions that wait for the other devices hold theirs: with one each,
# on a machine of few cores, two that run at the same time wait for ever (XLA ends the process after 40 s).
_THREADS = 8


def simulate(environment: MutableMapping[str, str], devices: int) -> None:
    """Let jax have so many simulated devices, in this process before it first uses jax or in another."""
    environment["XLA_FLAGS"] = device_flags(environment.get("XLA_FLAGS", ""), devices)
    # The number of threads that XLA takes in place of that of the cores (xla/pjrt/utils.cc).
    environment.setdefault("NPROC", str(min(_THREADS * devices, MOST_SIMULATED)))


def device_flags(flags: str, devices: int) -> str:
    """Return XLA_FLAGS with the number of simulated host devices replaced."""
    name = "--xla_force_host_platform_device_count"
    other_flags = [flag for flag in flags.split() if not flag.startswith(name)]
    return " ".join([*other_flags, f"{name}={devices}"])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a running worker and whatever it started; it leads its own process group."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _outcome(job: Job, code: int, log: Path) -> dict[str, Any]:
    """Return what the worker said about itself; of one that died, the last line it printed."""
    try:
        return dict(json.loads(job.outcome.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = f": {lines[-1].strip()}" if lines else ""
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return {"error": f"its process {how}{last}"}
