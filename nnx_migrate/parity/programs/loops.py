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
    """A loop over ``carry`` placeholders: ``test`` and ``steps`` are terms over them."""

    terms: Terms
    carry: list[int]
    initial: tuple[int, ...]
    test: int
    steps: tuple[int, ...]
    depth: int

    def results(self) -> list[int]:
        """Return the term of every result, in the operation's order."""
        return [self._result(index) for index in range(len(self.carry))]

    def _result(self, index: int) -> int:
        if self.steps[index] == self.carry[index]:
            return self.initial[index]
        live = self._live({index})
        colours = self._colours(live)
        place = self._placeholders(colours)
        values = self.terms.substitute([self.test], place)
        parts = (values[self.test], colours[index], *sorted(set(colours.values())))
        return self.terms.intern(
            Term("loop", level(self.depth), parts, self.terms[self.carry[index]].type)
        )

    def _live(self, results: set[int]) -> list[int]:
        """Return which carried values the wanted ones and the test depend on."""
        places = {number: index for index, number in enumerate(self.carry)}
        live = set(results)
        todo = [self.test, *(self.steps[index] for index in results)]
        while todo:
            for number in self.terms.reachable([todo.pop()]):
                index = places.get(number)
                if index is not None and index not in live:
                    live.add(index)
                    todo.append(self.steps[index])
        return sorted(live)

    def _colours(self, live: list[int]) -> dict[int, int]:
        constants = [index for index in live if self.steps[index] == self.carry[index]]
        moving = [index for index in live if index not in constants]
        colours = {index: self.initial[index] for index in constants}
        colours |= {index: self._colour((self.initial[index],)) for index in moving}
        colour_count = 0
        while len({colours[index] for index in moving}) > colour_count:
            colour_count = len({colours[index] for index in moving})
            values = self.terms.substitute(
                [self.steps[index] for index in moving], self._placeholders(colours, constants)
            )
            colours |= {
                index: self._colour((colours[index], values[self.steps[index]])) for index in moving
            }
        self._fixed = constants
        return colours

    def _colour(self, parts: tuple[int, ...]) -> int:
        return self.terms.intern(Term("colour", level(self.depth), parts, NOTHING))

    def _placeholders(
        self, colours: dict[int, int], constants: Iterable[int] | None = None
    ) -> dict[int, int]:
        """Return what stands for each placeholder: an unchanging value, or "the value so coloured"."""
        constants = set(self._fixed if constants is None else constants)
        return {
            self.carry[index]: colour
            if index in constants
            else self.terms.intern(
                Term("carry", level(self.depth), (colour,), self.terms[self.carry[index]].type)
            )
            for index, colour in colours.items()
        }
