"""Rewrites a program with both loops and runs the three sides in turns."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loops.programs import Program
from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import SourceText


@dataclass(frozen=True)
class Measured:
    """The shortest seconds of a step on one side, and the bits of its losses."""

    side: str
    wall: float
    cpu: float
    losses: bytes


def texts_of(program: Program) -> dict[str, str]:
    """The program's text by side: Linen's, and rewritten with either loop."""
    path = Path("/project/train.py")
    request = RewriteRequest(path.parent, (SourceText(path, program.text),), base=path.parent)
    found = {"linen": program.text}
    for loop in ("functional", "nnx"):
        result = rewrite_in(request, "auto", loop)
        (file,) = result.files
        about = [one.outcome.value for one in result.findings if one.rule == "loop"]
        assert all(one.form == "explicit" for one in result.classes), result.classes
        assert about == (["rewritten"] if loop == "nnx" else []), result.findings
        assert file.code is not None
        found[loop] = file.code
    return found


def measure(program: Program, repeats: int, steps: int) -> list[Measured]:
    """All sides, Linen first."""
    with tempfile.TemporaryDirectory() as folder:
        modules = _imported(Path(folder), texts_of(program))
        runs: dict[str, list[Any]] = {side: [] for side in modules}
        for _ in range(repeats):
            for side, module in modules.items():
                runs[side].append(module.train(steps))
    return [
        Measured(
            side,
            min(one[0] for one in found),
            min(one[1] for one in found),
            b"".join(np.asarray(loss).tobytes() for one in found for loss in one[2]),
        )
        for side, found in runs.items()
    ]


def _imported(folder: Path, texts: Mapping[str, str]) -> dict[str, Any]:
    modules: dict[str, Any] = {}
    for side, text in texts.items():
        file = folder / f"benchmarked_{side}.py"
        file.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        modules[side] = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[side])
    return modules
