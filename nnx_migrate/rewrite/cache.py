"""Results of earlier runs over the same texts: a run that would decide the same is not repeated.

One file per run in the user's cache folder, named by a hash of all that a run reads: every file of the
project, the settings, the evidence, what other packages say of classes here, and the tool itself.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nnx_migrate import model
from nnx_migrate.digests import digest
from nnx_migrate.model import RewriteResult
from nnx_migrate.rewrite import writer
from nnx_migrate.rewrite.lazy.foreign import foreign_bases
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.roots import import_names

FOLDER = "NNX_MIGRATE_CACHE"  # the environment's word for the folder; empty: no cache
_KEPT = 16  # runs; one over a large project is some MiB

Engine = Callable[[RewriteRequest], RewriteResult]


def folder() -> Path | None:
    """Where results are kept; None where nothing is."""
    named = os.environ.get(FOLDER)
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "nnx-migrate"
    except RuntimeError:  # a user without a home
        return None


def through(place: Path, request: RewriteRequest, form: str, engine: Engine) -> RewriteResult:
    """The result of an earlier run over the same texts, else the engine's.

    A result with an internal error is not kept: another machine, or more time, may do better.
    """
    file = place / f"{_key(request, form)}.result"
    known = _load(file)
    if known is not None:
        return known
    result = engine(request)
    if all(one.rule != "internal" for one in result.findings):
        with suppress(OSError):  # nowhere to keep it: the next run takes as long
            writer.write_cache_file(file, pickle.dumps(result), _KEPT)
    return result


def _key(request: RewriteRequest, form: str) -> str:
    return digest("\n".join(_read(request, form)).encode("utf-8", "surrogateescape"))


def _read(request: RewriteRequest, form: str) -> Iterator[str]:
    """All that decides a result, a line each."""
    sources = [*request.files, *request.context]
    names = import_names(sources, request.root)
    yield from (_tool(), form, _evidence(request), repr(request.settings))
    yield from (str(request.root), str(request.base), str(len(request.files)))
    yield repr((request.select, request.exclude, tuple(foreign_bases(request))))
    for source in sources:
        yield f"{source.path!s} {names[id(source)]} {digest(source.raw)}"


def _evidence(request: RewriteRequest) -> str:
    try:
        return digest(request.evidence.read_bytes()) if request.evidence else ""
    except OSError:
        return ""  # the engine says why


@cache
def _tool() -> str:
    """This version of the tool, also while it is being worked on."""
    files = sorted(Path(model.__file__).parent.rglob("*.py"))
    stamps = [f"{one} {one.stat().st_size} {one.stat().st_mtime_ns}" for one in files]
    return digest("\n".join([sys.version, version("libcst"), *stamps]).encode())


def _load(file: Path) -> RewriteResult | None:
    try:
        found = _Results(io.BytesIO(file.read_bytes())).load()
    except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ValueError, TypeError):
        return None  # there is none, or not a whole one: it is made again
    return found if isinstance(found, RewriteResult) else None


class _Results(pickle.Unpickler):
    """Reads plain results: a pickle that names anything else is none."""

    def find_class(self, module: str, name: str) -> Any:
        if module != model.__name__ or not isinstance(getattr(model, name, None), type):
            raise pickle.UnpicklingError(
                f"expected a type of {model.__name__}, found {module}.{name}"
            )
        return getattr(model, name)
