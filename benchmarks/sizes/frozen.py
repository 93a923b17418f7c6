"""The committed list of the sizes that cases need (``needed.json``).

By set, case and file: ``LINE:COLUMN CLASS LAYER.ARGUMENT = WIDTHS``. It is written after every
case, so that a run that is cut off loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.corpus.packages import Case
from benchmarks.sizes.traced import Needed

FILE = Path(__file__).parent / "needed.json"

Listed = Mapping[str, list[str]]  # by file


def listed(sizes: Iterable[Needed]) -> dict[str, list[str]]:
    """The sizes of one case as they are committed."""
    found: dict[str, list[str]] = {}
    for one in sizes:
        found.setdefault(one.path, []).append(one.entry)
    return found


def of_case(case: Case, file: Path = FILE) -> Listed | None:
    """What is committed for a case; None: nothing yet."""
    found: Listed | None = _read(file).get(case.set, {}).get(case.name)
    return found


def write(case: Case, sizes: Iterable[Needed], file: Path = FILE) -> None:
    """Commit the sizes of one case in the place of those it had."""
    content = _read(file)
    content.setdefault(case.set, {})[case.name] = listed(sizes)
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    unfinished = file.with_suffix(".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
