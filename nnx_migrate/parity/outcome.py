"""What a command of this part ends with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandOutcome:
    """What the command line prints and exits with: 0 equal, 1 different, 2 could not run."""

    exit_code: int
    lines: tuple[str, ...]
