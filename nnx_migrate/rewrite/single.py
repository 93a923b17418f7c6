"""Rewriting one source text that stands alone: ``nnx_migrate.rewrite_source``."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from pathlib import Path

from nnx_migrate.model import ClassResult, FileStatus, Finding, Tally
from nnx_migrate.rewrite.forms import FORMS, rewrite_in
from nnx_migrate.rewrite.loading import reason_of
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import SourceText


@dataclass(frozen=True)
class SourceResult:
    """What became of one source text; ``code`` is the text itself when nothing changed."""

    code: str
    findings: tuple[Finding, ...]
    classes: tuple[ClassResult, ...]
    references: Tally
    call_sites: Tally


def rewrite_source(text: str, form: str = "auto") -> SourceResult:
    """Rewrite one file's text; nothing is read, written, imported or run.

    Classes that the text imports from elsewhere are unknown here, so what hangs on them is lazy.
    Findings name the file ``source.py``.

    Args:
        form: ``auto`` (explicit where proven, else lazy), ``lazy`` or ``explicit`` (as auto).

    Raises:
        ValueError: the text is not Python, its new text cannot be made, or no such form.
    """
    if form not in FORMS:
        raise ValueError(f"form {form!r}: expected one of {', '.join(FORMS)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(reason_of(error)) from error
    root = Path("/")  # only a name: the text has no place on disk
    source = SourceText(root / "source.py", text)
    result = rewrite_in(RewriteRequest(root, (source,), base=root), form)
    (file,) = result.files
    if file.status is FileStatus.FAILED:
        raise ValueError(file.error)
    return SourceResult(
        code=text if file.code is None else file.code,
        findings=result.findings,
        classes=result.classes,
        references=result.references,
        call_sites=result.call_sites,
    )
