"""What edits are asked for with, as plain data; LibCST is not loaded here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class EditError(Exception):
    """The file cannot be edited, and why (one line); it stays as it is."""


@dataclass(frozen=True)
class NewImport:
    """``import module as alias``, or with a ``name`` ``from module import name as alias``."""

    module: str
    name: str | None = None
    alias: str | None = None


@dataclass(frozen=True)
class ImportChange:
    """What becomes of one import statement; also of any other that gets imports ``after`` it.

    ``names``: of ``import a, b``, the modules in their order. ``module``: of ``from a import b``,
    where the names at those ``positions`` come from now; all of them when it is empty.
    """

    names: tuple[str, ...] | None = None
    module: str | None = None
    positions: frozenset[int] = frozenset()
    after: tuple[NewImport, ...] = ()


@dataclass(frozen=True)
class Line:
    """A statement to stand on a line of its own, with the comments that come along."""

    statement: Any  # a simple statement
    above: Sequence[str] = ()  # comments on lines of their own
    beside: str | None = None  # the comment behind it
