"""What `rewrite` costs over whole trees, and whether it keeps its promises there.

    python -m benchmarks.lazy --rewrite DIR... [--form auto]

Per run: files that change, internal errors, whether the output compiles and has the same comments,
and the time as a ratio to LibCST's own parse and code generation of the files that change.
"""

from __future__ import annotations

import gc
import io
import resource
import time
import tokenize
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst

from nnx_migrate.model import FileStatus, Form, RewriteResult
from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.lazy.run import make_lazy
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.discovery import discover
from nnx_migrate.source.files import SourceText, read


@dataclass(frozen=True)
class Figures:
    """What one run over some trees showed; times in seconds of one core."""

    files: int
    flax_lines: int
    changed: int
    failed: tuple[str, ...]
    broken: tuple[str, ...]  # no Python any more, or other comments than before
    references: str
    classes: int
    explicit: int
    libcst: float
    editing: float
    whole: float
    peak_mib: int


def measure(folders: Sequence[Path], form: str = "lazy") -> Figures:
    """Rewrite the trees in memory and check every file that changes."""
    gc.disable()  # as the command does
    request = _request(folders)
    start = time.process_time()
    make_lazy(request)  # the edits of the lazy form alone
    editing = time.process_time() - start
    start = time.process_time()
    result = rewrite_in(_request(folders), form)
    whole = time.process_time() - start
    before = {_name(one, request): one for one in request.files}
    after = {one.path: one.code for one in result.files if one.code is not None}
    return Figures(
        files=len(request.files),
        flax_lines=sum(one.raw.count(b"\n") for one in request.files if b"flax" in one.raw),
        changed=len(after),
        failed=_failed(result),
        broken=tuple(path for path, code in after.items() if not _same(before[path].text, code)),
        references=f"{result.references.rewritten} of {result.references.total}",
        classes=len(result.classes),
        explicit=sum(one.form is Form.EXPLICIT for one in result.classes),
        libcst=_libcst([before[path].text for path in after]),
        editing=editing,
        whole=whole,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def lines(figures: Figures) -> list[str]:
    """The figures as a person reads them."""
    one = figures
    return [
        f"{one.files} files, {one.flax_lines} lines in files that mention flax: {one.changed} changed",
        f"references rewritten: {one.references}; classes: {one.classes}, explicit: {one.explicit}",
        f"failed files: {len(one.failed)} {' '.join(one.failed[:3])}".rstrip(),
        f"output that does not compile or lost a comment: {len(one.broken)} {' '.join(one.broken[:3])}",
        f"LibCST parse and code generation of the changed files: {one.libcst:.1f} s",
        f"edits of the lazy form alone: {one.editing:.1f} s ({one.editing / one.libcst:.2f} of it)",
        f"whole run with the counts of the report: {one.whole:.1f} s ({one.whole / one.libcst:.2f} of it)",
        f"peak memory: {one.peak_mib} MiB",
    ]


def _request(folders: Sequence[Path]) -> RewriteRequest:
    found = discover(folders)
    texts = (read(path) for path in found.files)
    sources = tuple(one for one in texts if isinstance(one, SourceText))
    return RewriteRequest(found.base, sources, base=found.base)


def _name(source: SourceText, request: RewriteRequest) -> str:
    return source.path.relative_to(request.root).as_posix()


def _failed(result: RewriteResult) -> tuple[str, ...]:
    return tuple(
        f"{one.path}: {one.error}" for one in result.files if one.status is FileStatus.FAILED
    )


def _same(before: str, after: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(after, "after.py", "exec", dont_inherit=True)
        except SyntaxError:
            return False
    return _comments(before) == _comments(after)


def _comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(one.string for one in tokens if one.type == tokenize.COMMENT)


def _libcst(texts: Sequence[str]) -> float:
    start = time.process_time()
    for text in texts:
        assert libcst.parse_module(text).code == text
    return time.process_time() - start
