"""Runs a project in this process and keeps what it prints."""

from __future__ import annotations

import contextlib
import io
import linecache
import signal
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType

SECONDS = 60.0


class TooSlow(Exception):
    """A program takes longer than `SECONDS` of the processor."""


@dataclass(frozen=True)
class Raised:
    """What a program raised: the name of its class, and its words."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: Exception) -> Raised:
        """What is raised, by its class and words."""
        return cls(type(error).__name__, str(error))

    def __str__(self) -> str:
        return f"{self.kind}: {' '.join(self.text.split())[:240]}"


Transcript = list[str] | Raised


@contextlib.contextmanager
def modules_of(files: Mapping[str, str]) -> Iterator[list[types.ModuleType]]:
    """The files as imported modules, in their order.

    Args:
      files: texts by path below the root of imports, in the order of imports.
    """
    names = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in files]
    kept = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    modules = []
    try:
        for (path, text), name in zip(files.items(), names, strict=True):
            module = types.ModuleType(name)
            package, _, last = name.rpartition(".")
            module.__package__ = name if path.endswith("__init__.py") else package
            if path.endswith("__init__.py"):
                module.__path__ = []
            sys.modules[name] = module
            # As of a file: what a method reads of its module shows in its source alone.
            linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
            if package:
                setattr(sys.modules[package], last, module)
            code = compile(text, path, "exec", dont_inherit=True)  # annotations are its own
            exec(code, module.__dict__)  # noqa: S102 - that is what it is for
            modules.append(module)
        yield modules
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(kept)


def transcript(files: Mapping[str, str]) -> Transcript:
    """Lines that ``main`` of the last file prints, or what is raised on the way.

    A program that exits or takes longer than `SECONDS` counts as one that raises.
    """
    printed = io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(printed),
            _limit(),
            modules_of(files) as modules,
        ):
            warnings.simplefilter("ignore")
            modules[-1].main()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared or shown
        return Raised.of(error)
    return printed.getvalue().splitlines()


@contextlib.contextmanager
def _limit() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"takes longer than {SECONDS:.0f} s")

    # Of this process: others on the machine make no program too slow.
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
