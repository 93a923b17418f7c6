"""One function per command: import its stack, run it, print, return the exit code."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from nnx_migrate.cli import printing
from nnx_migrate.cli.arguments import (
    ExplainOptions,
    LaterOptions,
    Options,
    ParityOptions,
    RecordOptions,
    RewriteOptions,
    ShardingsOptions,
    UndoOptions,
    UsageError,
    VerifyOptions,
    nearest,
)
from nnx_migrate.outputs import OutputError, check_outputs


def run(options: Options) -> int:
    """Run the command that ``options`` belong to."""
    match options:
        case RewriteOptions():
            from nnx_migrate.cli.rewriting import rewrite

            return rewrite(options)
        case UndoOptions():
            return _undo(options)
        case ExplainOptions():
            return _explain(options)
        case ParityOptions():
            return _parity(options)
        case VerifyOptions():
            return _verify(options)
        case ShardingsOptions():
            return _shardings(options)
        case RecordOptions():
            return _record(options)
        case LaterOptions():
            raise UsageError(f"{options.command}: not available yet")


def _parity(options: ParityOptions) -> int:
    # Before jax is loaded: how XLA's partitioner fares is no finding about a migration.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from nnx_migrate.parity.command import run as compare

    outcome = compare(options.words)
    return _print_outcome(outcome.exit_code, outcome.lines)


def _verify(options: VerifyOptions) -> int:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from nnx_migrate.parity.verify_command import run as verify

    outcome = verify(options.file)
    return _print_outcome(outcome.exit_code, outcome.lines)


def _shardings(options: ShardingsOptions) -> int:
    from nnx_migrate.parity.shardings_command import run as show

    outcome = show(options.words)
    return _print_outcome(outcome.exit_code, outcome.lines)


def _print_outcome(exit_code: int, lines: Sequence[str]) -> int:
    """Print what a command found, or why it could not, and return its exit code."""
    stream = sys.stderr if exit_code == 2 else sys.stdout
    for line in lines:
        stream.write(f"{line}\n")
    return exit_code


def _record(options: RecordOptions) -> int:
    from nnx_migrate.evidence.schema import EvidenceError
    from nnx_migrate.record import command

    if options.shim is not None and not options.shim.is_file():
        raise UsageError(f"--shim {options.shim}: no such file")
    try:
        shim = [options.shim] if options.shim is not None else []
        check_outputs([(f"-o {options.output}", options.output)], shim)
    except OutputError as error:
        raise UsageError(str(error)) from error
    words = command.RecordOptions(options.output, options.command, options.shim, options.seconds)
    try:
        status = command.record(words)
        sys.stderr.write(f"nnx-migrate: {command.summary(options.output)}\n")
    except EvidenceError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"record: {options.command[0]}: {reason}") from error
    return command.end_like(status)


def _explain(options: ExplainOptions) -> int:
    from nnx_migrate.rewrite.explain import explain, names

    try:
        text = explain(options.rule)
    except KeyError as error:
        raise UsageError(
            f"unknown rule {options.rule!r}{nearest(options.rule, names())}"
        ) from error
    sys.stdout.write("\n".join(_fold_lines(text)) + "\n")
    return 0


def _fold_lines(text: str) -> list[str]:
    """Lines as they are, and those too long for a terminal folded."""
    lines = text.rstrip().split("\n")
    return [
        part for line in lines for part in (textwrap.wrap(line, 100) if len(line) > 100 else [line])
    ]


def _undo(options: UndoOptions) -> int:
    from nnx_migrate.rewrite.journal import JournalError
    from nnx_migrate.rewrite.writer import Busy, undo

    root = _journal_root(options)
    try:
        undone = undo(root)
    except (Busy, JournalError) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"undo: {error.strerror or error}") from error
    for failure in undone.failures:
        printing.error(f"{failure.path.relative_to(root)}: {failure.reason}")
    sys.stdout.write(
        f"{len(undone.restored_files)} restored, {len(undone.failures)} left as they are\n"
    )
    return 1 if undone.failures else 0


def _journal_root(options: UndoOptions) -> Path:
    """Where the journal is: at ``--root``, above PATH, or in one directory right below it."""
    from nnx_migrate.model import JOURNAL_FOLDER
    from nnx_migrate.rewrite.journal import journal_file

    if options.root is not None:
        places = [options.root.resolve()]
    else:
        start = options.path.resolve()
        places = [start, *start.parents]
    for place in places:
        if journal_file(place).is_file():
            return place
    below = [] if options.root else sorted(places[0].glob(f"*/{JOURNAL_FOLDER}/journal.json"))
    if len(below) > 1:
        names = ", ".join(file.parent.parent.name for file in below)
        raise UsageError(
            f"undo: several journals below {places[0]} ({names}): name one with --root"
        )
    if below:
        return below[0].parent.parent
    raise UsageError(
        f"undo: no journal of an in-place run at or above {places[0]}: name the root with --root"
    )
