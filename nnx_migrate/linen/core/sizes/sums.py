"""Sizes that the variables held show in a sum: the input of a layer is them and something more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nnx_migrate.linen.core.sizes.declaration import Path
from nnx_migrate.linen.core.sizes.trial_shapes import PRIMES, Shapes, are_alike, built_shapes

Axis = tuple[Path, int]  # of a variable


def sizes_in_sums(
    make: Callable[..., Any], known_sizes: Mapping[str, Any], names: Iterable[str], shapes: Shapes
) -> dict[str, int]:
    """Sizes of which no axis is a multiple, from axes that count them among others.

    One that was found is known to the next, as the actions of which an input is concatenated.

    Args:
      known_sizes: all sizes of the module, the first prime for those that are not known.
      names: those in question.
      shapes: the variables that are held.
    """
    found: dict[str, int] = {}
    rest = list(names)
    while rest:
        guess = {**known_sizes, **found}
        first = built_shapes(make, guess)
        others = {name: built_shapes(make, {**guess, name: PRIMES[1]}) for name in rest}
        sums = _Sums(make, guess, first, shapes, _moved_axes(first, others, shapes))
        new = sums.alone() or sums.together()
        if not new:
            break
        found |= new
        rest = [name for name in rest if name not in found]
    return found


def _moved_axes(
    first: Shapes, others: Mapping[str, Shapes], shapes: Shapes
) -> dict[Axis, dict[str, int]]:
    """How often an axis of a variable that is held counts each of the sizes in question (0: in part)."""
    step = PRIMES[1] - PRIMES[0]
    found: dict[Axis, dict[str, int]] = {}
    for name, built in others.items():
        for path, shape in built.items():
            for axis, (one, other) in enumerate(zip(first[path], shape, strict=True)):
                if other != one and path in shapes:
                    times, left = divmod(other - one, step)
                    found.setdefault((path, axis), {})[name] = 0 if left else times
    return found


@dataclass(frozen=True)
class _Sums:
    """Axes that count sizes in question among others.

    Attributes:
      known_sizes: all sizes of the module, the first prime for those in question.
      first: the shapes of the variables with which it is built so.
      shapes: those of the variables that are held.
      axis_counts: how often each axis counts each of the sizes in question.
    """

    make: Callable[..., Any]
    known_sizes: dict[str, Any]
    first: Shapes
    shapes: Shapes
    axis_counts: Mapping[Axis, Mapping[str, int]]

    def alone(self) -> dict[str, int]:
        """Sizes of which an axis has so much more, or so many times as much and more.

        One is taken only where the module that is built with it has the axis that is held.
        """
        found: dict[str, int] = {}
        for (path, axis), counts in self.axis_counts.items():
            (name, times), *more = counts.items()
            if more or times < 1 or name in found:
                continue
            size, left = divmod(self.shapes[path][axis] - self.first[path][axis], times)
            size += PRIMES[0]
            if left or size < 1:
                continue
            built = built_shapes(self.make, {**self.known_sizes, name: size})
            if built[path][axis] == self.shapes[path][axis]:
                found[name] = size
        return found

    def together(self) -> dict[str, int]:
        """Sizes of which an axis has the sum, as of inputs that are concatenated.

        Any that add up to it do, where nothing that the module holds tells them apart.
        """
        found: dict[str, int] = {}
        for (path, axis), counts in self.axis_counts.items():
            if {*counts.values()} != {1}:
                continue
            name, *more = counts
            rest = self.first[path][axis] - PRIMES[0] * (1 + len(more))
            size = self.shapes[path][axis] - rest - len(more)
            moves = ({name: PRIMES[0] - 64, other: PRIMES[0] + 64} for other in more)
            is_free = size > 0 and not found.keys() & {name, *more}
            if (
                more
                and is_free
                and all(
                    are_alike(self.make, self.known_sizes, {**self.known_sizes, **one})
                    for one in moves
                )
            ):
                found |= {name: size, **dict.fromkeys(more, 1)}
        return found
