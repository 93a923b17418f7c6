"""A loop as terms: its carried values are told apart by what they are, not by their places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nnx_migrate.parity.programs.terms import NOTHING, Attributes, Term, Terms


def level(depth: int) -> Attributes:
    """Return how deep a term is in regions, which tells it from those of other regions."""
    return (("depth", str(depth)),)


@dataclass
class Loop:
    """A loop over ``carried`` placeholders: ``test`` and ``steps`` are terms over them."""

    terms: Terms
    carried: list[int]
    initial: tuple[int, ...]
    test: int
    steps: tuple[int, ...]
    depth: int

    def results(self) -> list[int]:
        """Return the term of every result, in the operation's order."""
        return [self._result(index) for index in range(len(self.carried))]

    def _result(self, index: int) -> int:
        if self.steps[index] == self.carried[index]:
            return self.initial[index]
        live = self._live({index})
        colours = self._colours(live)
        place = self._placed(colours)
        values = self.terms.substitute([self.test], place)
        parts = (values[self.test], colours[index], *sorted(set(colours.values())))
        return self.terms.intern(
            Term("loop", level(self.depth), parts, self.terms[self.carried[index]].type)
        )

    def _live(self, wanted: set[int]) -> list[int]:
        """Return which carried values the wanted ones and the test depend on."""
        places = {number: index for index, number in enumerate(self.carried)}
        live = set(wanted)
        todo = [self.test, *(self.steps[index] for index in wanted)]
        while todo:
            for number in self.terms.reachable([todo.pop()]):
                index = places.get(number)
                if index is not None and index not in live:
                    live.add(index)
                    todo.append(self.steps[index])
        return sorted(live)

    def _colours(self, live: list[int]) -> dict[int, int]:
        fixed = [index for index in live if self.steps[index] == self.carried[index]]
        moving = [index for index in live if index not in fixed]
        colours = {index: self.initial[index] for index in fixed}
        colours |= {index: self._colour((self.initial[index],)) for index in moving}
        known = 0
        while len({colours[index] for index in moving}) > known:
            known = len({colours[index] for index in moving})
            values = self.terms.substitute(
                [self.steps[index] for index in moving], self._placed(colours, fixed)
            )
            colours |= {
                index: self._colour((colours[index], values[self.steps[index]])) for index in moving
            }
        self._fixed = fixed
        return colours

    def _colour(self, parts: tuple[int, ...]) -> int:
        return self.terms.intern(Term("colour", level(self.depth), parts, NOTHING))

    def _placed(
        self, colours: dict[int, int], fixed: Iterable[int] | None = None
    ) -> dict[int, int]:
        """Return what stands for each placeholder: an unchanging value, or "the value so coloured"."""
        fixed = set(self._fixed if fixed is None else fixed)
        return {
            self.carried[index]: colour
            if index in fixed
            else self.terms.intern(
                Term("carry", level(self.depth), (colour,), self.terms[self.carried[index]].type)
            )
            for index, colour in colours.items()
        }
