"""What a command of this part ends with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandOutcome:
    """What the command line prints and exits with: 0 equal, 1 different, 2 could not run."""

    exit_code: int
    lines: tuple[str, ...]


def refusal(line: str) -> CommandOutcome:
    """The outcome of input that cannot be used."""
    return CommandOutcome(2, (printable(line),))


def printable(line: str) -> str:
    """One line, whatever characters the names in it have."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)
