"""How lines of a file are laid out: its indentation, its width, and how it indents inside of brackets."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

WIDTH = 100
_WIDTHS = (80, 88, WIDTH, 120)
_SAMPLE = 100  # lines of a file that show its width
_OPENING = re.compile(r"^( *+)(?!def |class |async def )\S.*[(\[{]\n( *)(?=\S)", re.MULTILINE)
_SINGLE = re.compile(r"(?<![\w'\"])'[^'\"\n]*'(?!')")
_DOUBLE = re.compile(r'(?<![\w\'"])"[^\'"\n]*"(?!")')
_LONG = re.compile(r"https?://|noqa|pylint|type: ignore")


@dataclass(frozen=True)
class Page:
    """How lines of a file are laid out.

    Attributes:
        unit: one level of indentation.
        width: columns of a line.
        hanging: the indentation of what stands inside of brackets; that of a level if it is empty.
    """

    unit: str
    width: int = WIDTH
    hanging: str = ""

    @property
    def inner(self) -> str:
        """One level of indentation inside of brackets."""
        return self.hanging or self.unit


@lru_cache(maxsize=256)
def width_of(text: str) -> int:
    """The width that a file keeps to: the least usual one that 99 % of its lines have.

    Short files do not show theirs.
    """
    lines = [one for one in text.splitlines() if one.strip() and not _LONG.search(one)]
    if len(lines) < _SAMPLE:
        return WIDTH
    longest = sorted(map(len, lines))[len(lines) * 99 // 100 - 1]
    return next((one for one in _WIDTHS if longest <= one), _WIDTHS[-1])


@lru_cache(maxsize=256)
def quote_of(text: str) -> str:
    """The quotes in which most short strings of a file stand."""
    return "'" if len(_SINGLE.findall(text)) > len(_DOUBLE.findall(text)) else '"'


@lru_cache(maxsize=256)
def page_of(text: str, unit: str) -> Page:
    """The page of a file; what is inside of brackets is indented as most of its own is."""
    found = Counter(len(inner) - len(outer) for outer, inner in _OPENING.findall(text))
    hanging = max((one for one in found if one > 0), key=lambda one: found[one], default=0)
    return Page(unit, width_of(text), "" if "\t" in unit else " " * hanging)
