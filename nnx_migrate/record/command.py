"""Run a command with the recorder in all its Python processes; everything else stays as it is."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from nnx_migrate.evidence import store
from nnx_migrate.evidence.schema import create
from nnx_migrate.record.hook import FILE, SECONDS, SHIM

STARTUP = Path(__file__).parent / "startup"
# A terminal sends these to the command as well: it decides, and its end ends this process.
_FROM_KEYBOARD = (signal.SIGINT, signal.SIGQUIT)
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True)
class RecordOptions:
    """What ``record`` is asked to do; ``seconds`` bounds the tracing when a process ends."""

    output: Path
    command: tuple[str, ...]
    shim: Path | None = None
    seconds: float = 120.0


def record(options: RecordOptions) -> int:
    """Run the command to its end.

    Standard streams, terminal, working directory and signals are the command's own.

    Returns:
        The command's exit status; minus the signal's number when one ended it.

    Raises:
        EvidenceError: the evidence file cannot be written; nothing was run.
        OSError: the command cannot be started.
    """
    output = options.output.absolute()
    create(output)
    environment = environment_for(os.environ, output, options)
    with _forwarding() as signals:
        process = subprocess.Popen(options.command, env=environment)
        signals.process = process
        status = process.wait()
    store.finish(output)
    return status


def environment_for(
    environ: Mapping[str, str], output: Path, options: RecordOptions
) -> dict[str, str]:
    """The command's environment: three variables of ours, and our folder first on PYTHONPATH."""
    environment = dict(environ)
    paths = [str(STARTUP), *filter(None, [environ.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment[FILE] = str(output)
    environment[SECONDS] = str(options.seconds)
    environment.pop(SHIM, None)
    if options.shim is not None:
        environment[SHIM] = str(options.shim.absolute())
    return environment


def end_like(status: int) -> int:
    """The exit code that tells a caller what the command's did; dies of the same signal."""
    if status < 0:
        number = signal.Signals(-status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return status


@dataclass
class _Signals:
    """Where signals to this process go. A handler, unlike SIG_IGN, is not inherited."""

    process: subprocess.Popen[bytes] | None = None

    def pass_on(self, number: int, frame: FrameType | None) -> None:
        """Give the command a signal that was sent to this process only."""
        if self.process is not None:
            self.process.send_signal(number)

    def leave(self, number: int, frame: FrameType | None) -> None:
        """The terminal has sent the command the same signal."""


@contextmanager
def _forwarding() -> Iterator[_Signals]:
    """Leave keyboard signals to the command and pass others on; what was ignored stays ignored."""
    signals = _Signals()
    handlers = {number: signal.getsignal(number) for number in (*_FROM_KEYBOARD, *_PASSED_ON)}
    for number, before in handlers.items():
        if before != signal.SIG_IGN:
            signal.signal(number, signals.leave if number in _FROM_KEYBOARD else signals.pass_on)
    try:
        yield signals
    finally:
        for number, before in handlers.items():
            signal.signal(number, before)


def summary(path: Path) -> str:
    """One line on what an evidence file holds now."""
    counts = store.counts(path)
    if not counts["classes"]:
        return (
            f"{path}: nothing was recorded: no Python process of the command that reads PYTHONPATH"
            " called a Linen module"
        )
    return (
        f"{path}: {counts['classes']} classes, {counts['instances']} instances,"
        f" {counts['traces']} traces"
    )
