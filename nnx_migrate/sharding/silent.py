"""What resolution decided without a word: rules that lost, names without a rule, axes dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RuleLost:
    """A rule of a name the array has was passed over, because another name has its mesh axes.

    Attributes:
      array: what the caller called the array, "" if nothing.
      dimension: position of ``name`` in the array's names.
      name: the logical axis name.
      rule: position of the rule that lost, in the order of the rules.
      axes: what that rule would have given.
      taken: pairs (mesh axis, the name that has it; "" if it was given as a mesh axis).
      instead: what the dimension got in the end, before axes were dropped.
    """

    array: str
    dimension: int
    name: str
    rule: int
    axes: Any
    taken: tuple[tuple[str, str], ...]
    instead: Any

    def __str__(self) -> str:
        owners_text = ", ".join(
            f"{axis!r} is used by {owner or '(given)'!r}" for axis, owner in self.taken
        )
        return (
            f"{_where(self)} rule {self.rule} ({self.name!r} -> {self.axes!r}) lost: {owners_text}; "
            f"the dimension got {self.instead!r}"
        )


@dataclass(frozen=True, slots=True)
class NameUnmatched:
    """No rule mentions the name, so its dimension is not sharded."""

    array: str
    dimension: int
    name: str

    def __str__(self) -> str:
        return f"{_where(self)} no rule mentions {self.name!r}; the dimension got None"


@dataclass(frozen=True, slots=True)
class AxesDropped:
    """Mesh axes left the spec because the mesh lacks them or has one device along them.

    ``name`` is "" where the array gave mesh axes and no name.
    """

    array: str
    dimension: int
    name: str
    size_one: tuple[str, ...]
    absent: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{axis!r} has size 1" for axis in self.size_one]
        parts += [f"{axis!r} is not in the mesh" for axis in self.absent]
        return f"{_where(self)} dropped for {self.name or '(given)'!r}: {', '.join(parts)}"


Silent = RuleLost | NameUnmatched | AxesDropped


class SilentResolutionError(ValueError):
    """Strict resolution met a rule that lost or a name without a rule.

    Attributes:
      silent: all of them, in order of the dimensions.
    """

    def __init__(self, silent: tuple[Silent, ...]) -> None:
        self.silent = silent
        lines = "\n".join(f"  {one}" for one in silent)
        super().__init__(
            f"strict resolution: expected every name to get its first rule, found\n{lines}\n"
            "Change the rules so that the first rule of each name applies, or resolve without strict."
        )


def _where(one: Silent) -> str:
    return f"{one.array or 'array'}, dimension {one.dimension}:"
