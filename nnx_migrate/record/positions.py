"""Where in the user's code a module is built or called: the very call expression."""

from __future__ import annotations

import sys
from itertools import islice
from types import CodeType, FrameType

from flax.linen import kw_only_dataclasses

from nnx_migrate.evidence.observations import Place
from nnx_migrate.record.source_files import SourceFiles, is_library

# Wraps the generated ``__init__`` of a class with keyword-only fields; every module inherits two.
_INIT_WRAPPERS = kw_only_dataclasses.__file__

_known: dict[tuple[CodeType, int], tuple[int, int, int, int] | None] = {}


def constructor_of(files: SourceFiles) -> Place | None:
    """The expression whose evaluation runs the constructor on the stack.

    None when library code runs it: a clone, or a layer that a layer builds.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_generated_init(frame):
        frame = frame.f_back
    frame = frame.f_back if frame is not None else None
    while frame is not None and frame.f_code.co_filename == _INIT_WRAPPERS:
        frame = frame.f_back
    return _place(frame, files)


def caller(files: SourceFiles) -> Place | None:
    """The innermost expression of the user's code that is being evaluated."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return _place(frame, files)


def _is_generated_init(frame: FrameType) -> bool:
    """The ``__init__`` that dataclasses write, which every Linen module has."""
    return frame.f_code.co_name == "__init__" and frame.f_code.co_filename == "<string>"


def _place(frame: FrameType | None, files: SourceFiles) -> Place | None:
    if frame is None:
        return None
    file = files.file(frame.f_code.co_filename)
    span = _span(frame.f_code, frame.f_lasti)
    return Place(file.hash, *span) if file is not None and span is not None else None


def _span(code: CodeType, instruction: int) -> tuple[int, int, int, int] | None:
    """Lines from 1 and byte columns from 0 of one instruction, as ``ast`` counts them."""
    key = (code, instruction)
    if key not in _known:
        line, end_line, column, end_column = next(
            islice(code.co_positions(), instruction // 2, None), (None, None, None, None)
        )
        is_complete = None not in (line, end_line, column, end_column)
        _known[key] = (line, column, end_line, end_column) if is_complete else None  # type: ignore[assignment]
    return _known[key]
