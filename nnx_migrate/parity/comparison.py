"""What the words of ``parity`` ask for, compared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nnx_migrate.parity import words as read_words
from nnx_migrate.parity.comparison_result import Compared
from nnx_migrate.parity.files.process import MOST_SIMULATED
from nnx_migrate.parity.files.run import FileOptions, compare_case_file
from nnx_migrate.parity.models.options import ModelOptions, model_options
from nnx_migrate.parity.recordings.modules import is_evidence
from nnx_migrate.parity.words import BadWord

KEYS = (
    "case",
    "model",
    "before",
    "after",
    "map",
    "report",
    "certificate",
    "seed",
    "steps",
    "devices",
    "mesh",
    "shard_mode",
    "class",
    "instances",
    "shim",
)


@dataclass(frozen=True)
class FileComparison:
    """``case=FILE.py``, ready to run: its words are known to be usable."""

    given: Mapping[str, str]
    options: FileOptions

    @property
    def title(self) -> str:
        """What is compared, for a person."""
        return self.given["case"]

    def run(self) -> Compared:
        """Compare the two sides. Raises CaseError with one line when they cannot be run."""
        before, after, file = (self.given.get(key) for key in ("before", "after", "map"))
        return compare_case_file(self.given["case"], before, after, file, self.options)


@dataclass(frozen=True)
class ModelComparison:
    """``model=NAME``, ready to run: its words are known to be usable."""

    options: ModelOptions

    @property
    def title(self) -> str:
        """What is compared, for a person."""
        return self.options.describe()

    def run(self) -> Compared:
        """Compare the two sides. Raises BadWord with one line when they cannot be run."""
        from nnx_migrate.parity.models.full import run_full
        from nnx_migrate.parity.models.run import run_model

        return run_full(self.options) if self.options.size == "full" else run_model(self.options)


def certifiable(given: Mapping[str, str]) -> FileComparison | ModelComparison:
    """The comparison that a certificate is of; it keeps the training state.

    Raises:
        BadWord: the words cannot be used, or ask for what no certificate is of.
    """
    if "model" in given:
        options = model_options(given)
        if options.distributed:
            raise BadWord("certificate= is of a run in one process, not of distributed=true")
        return ModelComparison(dataclasses.replace(options, keeps_state=True))
    file = file_comparison(given)
    if is_evidence(Path(given["case"])):
        raise BadWord("certificate= is of case=FILE.py or model=NAME, not of recorded modules")
    return FileComparison(given, dataclasses.replace(file.options, keeps_state=True))


def file_comparison(given: Mapping[str, str]) -> FileComparison:
    """The comparison of a case. Raises BadWord for the first word that cannot be used."""
    read_words.require_known(tuple(given), KEYS)
    if "case" not in given:
        raise BadWord("nothing to compare: pass case=FILE.py or model=NAME")
    options = _options(given)
    if not is_evidence(Path(given["case"])):
        for key in ("class", "instances", "shim"):
            if key in given:
                raise BadWord(f"{key}= is for case=FILE.db, a file that record wrote")
    return FileComparison(given, options)


def _options(given: Mapping[str, str]) -> FileOptions:
    devices = read_words.number(given, "devices", 1)
    mesh = read_words.mesh_sizes(given["mesh"]) if "mesh" in given else None
    if mesh is not None and devices is not None and math.prod(mesh.values()) > devices:
        needed = math.prod(mesh.values())
        raise BadWord(f"mesh={given['mesh']} needs {needed} devices, devices={devices} are given")
    needed = max(devices or 1, math.prod((mesh or {}).values()))
    if needed > MOST_SIMULATED:
        word = f"mesh={given['mesh']}" if mesh else f"devices={devices}"
        raise BadWord(
            f"{word}: expected at most {MOST_SIMULATED} simulated devices, found {needed}"
        )
    return FileOptions(
        seed=read_words.number(given, "seed", 0),
        steps=read_words.number(given, "steps", 0),
        devices=devices,
        mesh=mesh,
        shard_mode=read_words.choice(given, "shard_mode", ("auto", "explicit")),
    )
