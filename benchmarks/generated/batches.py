"""Batches of programs: number ``k`` is always the same programs, so that a run goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.generated.comparing import FINE, FORMS, Outcome, linen_of, outcome
from benchmarks.generated.projects import Project, projects
from benchmarks.generated.running import Raised, transcript
from benchmarks.generated.shrinking import shrunk
from benchmarks.generated.transcripts import Runner, Transcripts
from benchmarks.sources import ROOT

SIZE = 20  # programs of a batch
FOLDER = ROOT / ".cache" / "generated"


@dataclass(frozen=True)
class Row:
    """One program: its batch and number there, what Linen raises, and its outcomes by form."""

    batch: int
    number: int
    linen: str
    outcomes: Mapping[str, Outcome]
    seconds: float
    text: str = ""  # of a program with a fault

    @property
    def faults(self) -> dict[str, Outcome]:
        """Outcomes that are wrong, by form."""
        return {form: one for form, one in self.outcomes.items() if one.kind not in FINE}


def row_of(data: Mapping[str, Any]) -> Row:
    """The row that ``asdict`` made these data of."""
    outcomes = {form: Outcome(**one) for form, one in data["outcomes"].items()}
    return Row(**{**data, "outcomes": outcomes})


def programs_of(batch: int, size: int = SIZE) -> list[Project]:
    """The programs of a batch, each once: at most ``size``."""
    found: list[Project] = []

    @seed(batch)
    @settings(
        max_examples=size,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(projects())
    def keep(project: Project) -> None:
        found.append(project)

    keep()
    return list(dict.fromkeys(found))


def rows_of(batch: int) -> list[Row]:
    """Every program of a batch rewritten, run and compared."""
    run = Transcripts(FOLDER / "transcripts")
    return [row(batch, number, one, run) for number, one in enumerate(programs_of(batch))]


def row(batch: int, number: int, project: Project, run: Runner = transcript) -> Row:
    """One program, in all forms."""
    start = time.perf_counter()
    wanted = linen_of(project, run)
    outcomes = {form: outcome(project, form, wanted, run) for form in FORMS}
    raised = str(wanted)[:200] if isinstance(wanted, Raised) else ""
    found = Row(batch, number, raised, outcomes, round(time.perf_counter() - start, 3))
    return Row(**{**vars(found), "text": project.text}) if found.faults else found


def minimal(project: Project, form: str, kind: str) -> Project:
    """A smaller project with a fault of that kind, of which Linen still prints something."""

    def is_faulty(one: Project) -> bool:
        wanted = linen_of(one)
        return bool(wanted) and isinstance(wanted, list) and outcome(one, form, wanted).kind == kind

    return shrunk(project, is_faulty)


def read(path: Path) -> list[Row]:
    """The rows written so far; a last line that was cut off is left out."""
    if not path.is_file():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(row_of(json.loads(line)))
        except json.JSONDecodeError:
            break
    return found


def append(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows behind those that are there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(asdict(one)) + "\n" for one in rows))
