"""Load a case file: ``linen()``, ``inputs()``, optional ``initial()``, ``nnx(rngs)``, ``loss``, ``CASE``."""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

# The name a case file is imported under, on both sides, so that what it defines can cross.
MODULE_NAME = "nnx_migrate_parity_case"

CASE_KEYS = (
    "rngs",
    "collections",
    "mesh",
    "axis_rules",
    "steps",
    "optimizer",
    "shard_mode",
    "path_map",
    "method",
    "seed",
    "tolerance",
    "stateless",
)


class CaseError(Exception):
    """The case could not be run; the message is one line for the user."""


# Frames of the import system, of the standard library and of this package say nothing to the user.
_NOT_THE_USERS = ("<", str(Path(__file__).parents[1]) + os.sep)
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")


@dataclass(frozen=True)
class CaseFile:
    """A loaded case file. What it may leave out is None then."""

    path: Path
    linen: Callable[[], Any]
    inputs: Callable[[], Any]
    initial: Callable[[], Any] | None
    nnx: Callable[[Any], Any] | None
    loss: Callable[..., Any] | None
    settings: Mapping[str, Any]


def load_case(path: Path) -> CaseFile:
    """Import a case file. Raises :class:`CaseError` when it raises or lacks a function."""
    with case_errors("the case file"):
        module = _import(path)
    settings = getattr(module, "CASE", {})
    if not isinstance(settings, Mapping):
        raise CaseError(f"{path.name}: CASE: expected a dict, found {type(settings).__name__}")
    for key in settings:
        if key not in CASE_KEYS:
            raise CaseError(f"{path.name}: CASE has no key {key!r}{nearest(str(key), CASE_KEYS)}")
    return CaseFile(
        path=path,
        linen=_function(module, path, "linen"),
        inputs=_function(module, path, "inputs"),
        initial=_optional(module, path, "initial", "()"),
        nnx=_optional(module, path, "nnx", "(rngs)"),
        loss=_optional(module, path, "loss", "(outputs, *inputs)"),
        settings=settings,
    )


def call_arguments(value: Any, path: Path) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Split what ``inputs()`` returned into ``(args, kwargs)``.

    A tuple of a tuple (or list) and a dict is ``(args, kwargs)``; any other tuple or list is the
    arguments; a single array or named tuple is the only
    argument.
    """
    if isinstance(value, tuple) and len(value) == 2:
        first, second = value
        if isinstance(first, (tuple, list)) and isinstance(second, dict):
            return tuple(first), dict(second)
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return tuple(value), {}
    if hasattr(value, "shape") or hasattr(value, "_fields"):
        return (value,), {}
    raise CaseError(
        f"{path.name}: inputs() returned a {type(value).__name__}: expected a tuple of call "
        "arguments, or (args, kwargs)"
    )


def nearest(word: str, vocabulary: Sequence[str]) -> str:
    """Return ``; did you mean ...?`` for a misspelt word, or the list of known ones."""
    close = difflib.get_close_matches(word, vocabulary, n=1)
    return f"; did you mean {close[0]}?" if close else f" (known: {', '.join(vocabulary)})"


@contextmanager
def case_errors(function: str) -> Iterator[None]:
    """Turn an exception of user code into a :class:`CaseError` that names function and place."""
    try:
        yield
    except CaseError:
        raise
    except (Exception, SystemExit) as error:
        raise CaseError(describe_error(function, error)) from error


def describe_error(function: str, error: BaseException) -> str:
    """Return ``linen() raised ValueError: message (model.py:12)`` on one line."""
    message = " ".join(str(error).split())
    if len(message) > 400:
        message = f"{message[:400]}..."
    where = place(error)
    return f"{function} raised {type(error).__name__}: {message}{f' ({where})' if where else ''}"


def place(error: BaseException) -> str:
    """Return ``file:line`` of the innermost frame outside installed packages, else of any."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    frames_of_interest = (
        [frame for frame in own if not _is_installed(frame.filename)] or own or frames
    )
    return (
        f"{Path(frames_of_interest[-1].filename).name}:{frames_of_interest[-1].lineno}"
        if frames_of_interest
        else ""
    )


def _is_installed(filename: str) -> bool:
    return "site-packages" in filename or filename.startswith(_STANDARD_LIBRARY + os.sep)


def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    if spec is None or spec.loader is None:
        raise CaseError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module
    spec.loader.exec_module(module)
    return module


def _function(module: ModuleType, path: Path, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found) or isinstance(found, ModuleType):
        near = nearest(name, [word for word in vars(module) if not word.startswith("_")] or [name])
        hint = near if near.startswith(";") else ""
        raise CaseError(f"{path.name}: expected a function {name}(){hint}")
    return found  # type: ignore[no-any-return]


def _optional(
    module: ModuleType, path: Path, name: str, parameters: str
) -> Callable[..., Any] | None:
    """Return a function of the file; ``from flax import nnx`` is an import, not a ``nnx()``.

    Raises:
        CaseError: the name stands for something else.
    """
    found = getattr(module, name, None)
    if found is None or isinstance(found, ModuleType):
        return None
    if not callable(found):
        raise CaseError(
            f"{path.name}: {name}: expected a function {name}{parameters}, found {found!r:.80}: define "
            "one, or leave it out"
        )
    return found  # type: ignore[no-any-return]
