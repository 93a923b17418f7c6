"""What is said of an exception that nobody expected."""

from __future__ import annotations

import os
import traceback


def describe(bug: Exception) -> str:
    """``at file.py:3: ValueError: ...``, on one line."""
    frames = traceback.extract_tb(bug.__traceback__)
    at = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    what = " ".join(f"{type(bug).__name__}: {bug}".split())
    return f"{at}: {what}"
