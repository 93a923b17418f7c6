"""``nnx-migrate verify FILE``: run what a certificate is of again, and compare everything it says.

jax is loaded only when the files are what they were.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nnx_migrate.parity.certificate.comparing import Verification, compare
from nnx_migrate.parity.certificate.data import OF_THIS_VERSION, Certificate, RunContext
from nnx_migrate.parity.certificate.preparing import prepare
from nnx_migrate.parity.certificate.reading import CertificateError, load
from nnx_migrate.parity.certificate.sources import changes
from nnx_migrate.parity.files.case_file import CaseError
from nnx_migrate.parity.outcome import CommandOutcome, printable
from nnx_migrate.parity.words import BadWord, read

_SHOWN = 10


def run(file: Path) -> CommandOutcome:
    """Verify a certificate: 0 as certified, 1 not so, 2 it cannot be told. Never raises for bad input."""
    try:
        old = load(file)
        values = read(old.command)
        context = _context(values)
        change_texts = changes(old.sources, context.sources)
        if change_texts:
            head = (
                f"{file}: not verified: {len(change_texts)} files are not those that were certified"
            )
            return _outcome(1, [head, *_first(change_texts)])
        new = _again(values, context)
    except CertificateError as error:
        return _outcome(2, [f"verify: {error}"])
    except (BadWord, CaseError) as error:
        return _outcome(2, [f"verify: {file}: {error}"])
    found = compare(old, new)
    return _outcome(0 if found.ok else 1, list(_lines(file, new, found)))


def _context(values: Mapping[str, str]) -> RunContext:
    if not {"case", "model"} & values.keys():
        raise BadWord("command: expected case=FILE.py or model=NAME among its words")
    try:
        return prepare(values, os.environ)
    except BadWord as error:
        raise BadWord(
            f"{error} (its paths are relative to the folder that parity ran in: verify it there)"
        ) from error


def _again(values: Mapping[str, str], context: RunContext) -> Certificate:
    """Run the words again; from here on jax is needed."""
    from nnx_migrate.parity.certificate.making import certificate
    from nnx_migrate.parity.comparison import certifiable

    return certificate(context, certifiable(values).run())


def _lines(file: Path, new: Certificate, verification: Verification) -> Iterator[str]:
    if verification.ok:
        counts = ", ".join(f"{count} {kind}" for kind, count in verification.equal.items() if count)
        part = "in part " if verification.circumstances else ""
        yield f"{file}: {part}as certified: {new.model} is {new.verdict} (equal: {counts})"
    else:
        yield f"{file}: not as certified: {len(verification.differences)} entries differ"
        yield from _first(verification.differences)
    if verification.circumstances:
        yield (
            "  values, losses and programs were not compared, as they depend on what is another "
            f"here: {'; '.join(verification.circumstances)}"
        )
    if new.without_values:
        yield f"  there are no values to compare: {new.without_values}"
    if verification.is_other_parity:
        yield "  parity itself is not the one that wrote it: its sources differ"
    yield f"  mutation score: {_score(new)}"


def _score(new: Certificate) -> str:
    score = new.mutation_score
    if score.state != OF_THIS_VERSION:
        return score.state
    sizes = (
        f"{size} {one.killed} of {one.total - one.equivalent}, place named in {one.named}"
        for size, one in score.sizes.items()
    )
    return "; ".join(sizes)


def _first(lines: Sequence[str]) -> list[str]:
    more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [*(f"  {line}" for line in lines[:_SHOWN]), *more]


def _outcome(exit_code: int, lines: Sequence[str]) -> CommandOutcome:
    return CommandOutcome(exit_code, tuple(map(printable, lines)))
