"""What a certificate holds, as plain data; the names are those of the JSON file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NewType

from nnx_migrate.parity.report import Status, Verdict

SCHEMA = 1
KIND = "parity certificate"

Digest = NewType("Digest", str)  # SHA-256 in hexadecimal
Number = NewType("Number", str)  # a float as float.hex() spells it, nan or inf
Count = NewType("Count", int)  # a whole number, never negative
Word = NewType("Word", str)  # key=value of the command line

# Hashes of files by path, for each of ``case``, ``before``, ``after``, ``map`` and ``rules`` that there is.
Sources = Mapping[str, Mapping[str, Digest]]

OF_THIS_VERSION: Literal["of this version"] = "of this version"
OF_ANOTHER: Literal["of another version"] = "of another version"


@dataclass(frozen=True)
class Leaf:
    """One array; ``sha256`` is of its bytes in row-major order, None where it has no values."""

    shape: tuple[Count, ...]
    dtype: str
    sha256: Digest | None


@dataclass(frozen=True)
class Spec:
    """How an array of the training state lies on the mesh.

    ``spec`` is what its logical axis ``names`` resolve to, ``placed`` where it is and ``after_step``
    where it is after a step, both without mesh axes of size 1.
    """

    names: tuple[str | None, ...] | None
    spec: str
    placed: str
    after_step: str | None


@dataclass(frozen=True)
class Side:
    """What one side showed, by path.

    ``initial`` are all variables as initialised, ``outputs`` and ``gradients`` those of the call that
    the case gives, ``after_steps`` the training state after the last step. ``programs`` are hashes of
    canonical texts.
    """

    model: str
    initial: Mapping[str, Leaf]
    outputs: Mapping[str, Leaf]
    gradients: Mapping[str, Leaf]
    after_steps: Mapping[str, Leaf]
    specs: Mapping[str, Spec]
    programs: Mapping[str, Digest]
    losses: Mapping[str, Number]


@dataclass(frozen=True)
class CheckStatus:
    """How a check of parity ended, and how many leaves it compared."""

    name: str
    status: Status
    leaves: Count


@dataclass(frozen=True)
class Provenance:
    """What the run was made by and on; ``settings`` are environment variables that jax reads."""

    versions: Mapping[str, str]
    machine: Mapping[str, str]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Tally:
    """Faults in one size of model: ``killed`` by a check, with the place ``named``, or ``equivalent``."""

    total: Count
    equivalent: Count
    killed: Count
    named: Count


@dataclass(frozen=True)
class MutationScore:
    """How many one-line faults the checks of parity see.

    ``source`` is the hash of the installed sources of parity; a score of others is not claimed.
    """

    state: Literal["of this version", "of another version"]
    source: Digest
    sizes: Mapping[str, Tally]


@dataclass(frozen=True)
class Certificate:
    """One finished run of ``parity``.

    ``command`` are its words but for those that name files to write. ``without_values`` says why
    nothing has values, "" where it has.
    """

    command: tuple[Word, ...]
    provenance: Provenance
    sources: Sources
    verdict: Verdict
    ok: bool
    model: str
    mesh: str | None
    checks: tuple[CheckStatus, ...]
    modes: tuple[str, ...]
    rules_used: tuple[str, ...]
    not_checked: tuple[str, ...]
    without_values: str
    linen: Side
    nnx: Side
    mutation_score: MutationScore

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready data; the same run gives the same."""
        return {"kind": KIND, "schema": SCHEMA, **dataclasses.asdict(self)}

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(self.as_dict(), indent=1) + "\n"


@dataclass(frozen=True)
class RunContext:
    """What is known of a run before it begins: its words, its files and the settings of jax."""

    command: tuple[Word, ...]
    sources: Sources
    settings: Mapping[str, str]
