"""What the words of ``parity`` ask for, compared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nnx_migrate.parity import words as read_words
from nnx_migrate.parity.comparison_result import ComparisonResult
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

    values: Mapping[str, str]
    options: FileOptions

    @property
    def title(self) -> str:
        """What is compared, for a person."""
        return self.values["case"]

    def run(self) -> ComparisonResult:
        """Compare the two sides. Raises CaseError with one line when they cannot be run."""
        before, after, file = (self.values.get(key) for key in ("before", "after", "map"))
        return compare_case_file(self.values["case"], before, after, file, self.options)


@dataclass(frozen=True)
class ModelComparison:
    """``model=NAME``, ready to run: its words are known to be usable."""

    options: ModelOptions

    @property
    def title(self) -> str:
        """What is compared, for a person."""
        return self.options.describe()

    def run(self) -> ComparisonResult:
        """Compare the two sides. Raises BadWord with one line when they cannot be run."""
        from nnx_migrate.parity.models.full import run_full
        from nnx_migrate.parity.models.run import run_model

        return run_full(self.options) if self.options.size == "full" else run_model(self.options)


def certifiable(values: Mapping[str, str]) -> FileComparison | ModelComparison:
    """The comparison that a certificate is of; it keeps the training state.

    Raises:
        BadWord: the words cannot be used, or ask for what no certificate is of.
    """
    if "model" in values:
        options = model_options(values)
        if options.distributed:
            raise BadWord("certificate= is of a run in one process, not of distributed=true")
        return ModelComparison(dataclasses.replace(options, keeps_state=True))
    file = file_comparison(values)
    if is_evidence(Path(values["case"])):
        raise BadWord("certificate= is of case=FILE.py or model=NAME, not of recorded modules")
    return FileComparison(values, dataclasses.replace(file.options, keeps_state=True))


def file_comparison(values: Mapping[str, str]) -> FileComparison:
    """The comparison of a case. Raises BadWord for the first word that cannot be used."""
    read_words.require_keys(tuple(values), KEYS)
    if "case" not in values:
        raise BadWord("nothing to compare: pass case=FILE.py or model=NAME")
    options = _options(values)
    if not is_evidence(Path(values["case"])):
        for key in ("class", "instances", "shim"):
            if key in values:
                raise BadWord(f"{key}= is for case=FILE.db, a file that record wrote")
    return FileComparison(values, options)


def _options(values: Mapping[str, str]) -> FileOptions:
    devices = read_words.number(values, "devices", 1)
    mesh = read_words.mesh_sizes(values["mesh"]) if "mesh" in values else None
    if mesh is not None and devices is not None and math.prod(mesh.values()) > devices:
        device_count = math.prod(mesh.values())
        raise BadWord(
            f"mesh={values['mesh']} needs {device_count} devices, devices={devices} are given"
        )
    device_count = max(devices or 1, math.prod((mesh or {}).values()))
    if device_count > MOST_SIMULATED:
        word = f"mesh={values['mesh']}" if mesh else f"devices={devices}"
        raise BadWord(
            f"{word}: expected at most {MOST_SIMULATED} simulated devices, found {device_count}"
        )
    return FileOptions(
        seed=read_words.number(values, "seed", 0),
        steps=read_words.number(values, "steps", 0),
        devices=devices,
        mesh=mesh,
        shard_mode=read_words.choice(values, "shard_mode", ("auto", "explicit")),
    )
