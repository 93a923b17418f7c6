"""Dicts of sizes by submodule, of which some are not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class SizeDict(dict[str, Any]):
    """Sizes by submodule; any other submodule that is asked for has the guess.

    ``asked``: the names that had it.
    """

    def __init__(self, sizes: Mapping[str, Any], guess: Any) -> None:
        super().__init__(sizes)
        self.guess = guess
        self.asked: set[str] = set()

    def __missing__(self, name: str) -> Any:
        self.asked.add(name)
        return self.guess

    def get(self, name: str, default: Any = None) -> Any:
        """The size; constructors read sizes that they may go without so."""
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True
