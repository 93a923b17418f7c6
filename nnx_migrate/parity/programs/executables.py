"""What the compiler makes of a lowered program: its collectives, and the memory of one device."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

# One instruction per pair: of a collective in two halves only the start is counted.
_COLLECTIVE = re.compile(
    r"= (?:\([^=]*?\)|\S+) "
    r"(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\("
)
_MEMORY = ("argument", "output", "temp", "alias")


def collectives(executable: Any) -> dict[str, int]:
    """Count the collective operations of an executable (``lowered.compile()``) by kind."""
    return dict(sorted(Counter(_COLLECTIVE.findall(executable.as_text())).items()))


def memory(executable: Any) -> dict[str, int]:
    """Bytes of one device by what they hold: arguments, results, in between, both at once."""
    found = executable.memory_analysis()
    return {name: int(getattr(found, f"{name}_size_in_bytes")) for name in _MEMORY}
