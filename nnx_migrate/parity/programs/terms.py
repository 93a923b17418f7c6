"""StableHLO values as terms: one number per distinct value, whatever the order of the text.

Two values that are computed the same way from the same arguments get the same number, so two
programs are compared by comparing numbers. Rewriting rules apply when a term is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Attributes: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TensorType:
    """A ranked tensor type; anything else has ``element`` as its text and no shape."""

    shape: tuple[int, ...] | None
    element: str


NOTHING = TensorType(None, "")  # of what is no value: an effect, a region


@dataclass(frozen=True)
class Term:
    """An operation's result: ``index`` tells apart the results of one operation."""

    op: str
    attributes: Attributes
    operands: tuple[int, ...]
    type: TensorType
    index: int = 0

    def attribute(self, name: str) -> str | None:
        """Return the text of an attribute."""
        return dict(self.attributes).get(name)


@dataclass(frozen=True)
class Rule:
    """A rewriting of the results of some operations.

    ``apply`` returns the number of the value that such a term is, another term for it, or None where
    the rule says nothing.
    """

    ops: frozenset[str]
    apply: Callable[[Terms, Term], int | Term | None]


# Operands from this place on are a set, kept sorted: replaced ones have other numbers.
_SETS = {"loop": 2, "barrier": 1}


def _operand_order(op: str, operands: list[int]) -> tuple[int, ...]:
    ordered_count = _SETS.get(op, len(operands))
    return (*operands[:ordered_count], *sorted(set(operands[ordered_count:])))


class Terms:
    """Interned terms of any number of programs, and the rules they are simplified by.

    A term's operands always have smaller numbers than the term. ``fired`` collects the names of
    the rules that changed anything.
    """

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        """Start without terms."""
        self._rules = dict(rules)
        self._ops = frozenset(op for rule in self._rules.values() for op in rule.ops)
        self._numbers: dict[Term, int] = {}
        self._terms: list[Term] = []
        self.fired: set[str] = set()

    def __getitem__(self, number: int) -> Term:
        """Return the term of a number."""
        return self._terms[number]

    def intern(self, term: Term) -> int:
        """Return the number of a term as it stands."""
        number = self._numbers.setdefault(term, len(self._terms))
        if number == len(self._terms):
            self._terms.append(term)
        return number

    def make(self, term: Term) -> int:
        """Return the number of a term after simplification."""
        is_new = term.op in self._ops
        while is_new:
            is_new = False
            for name, rule in self._rules.items():
                result = rule.apply(self, term) if term.op in rule.ops else None
                if result is None:
                    continue
                self.fired.add(name)
                if isinstance(result, int):
                    return result
                term, is_new = result, True
        return self.intern(term)

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """Return the numbers below ``roots``, operands before their users."""
        visited_terms: set[int] = set()
        todo = list(roots)
        while todo:
            number = todo.pop()
            if number not in visited_terms:
                visited_terms.add(number)
                todo.extend(self._terms[number].operands)
        return sorted(visited_terms)

    def substitute(self, roots: Iterable[int], values: Mapping[int, int]) -> dict[int, int]:
        """Return the number of each reachable term after replacing some terms by others."""
        result: dict[int, int] = {}
        for number in self.reachable(roots):
            if number in values:
                result[number] = values[number]
                continue
            term = self._terms[number]
            operands = _operand_order(term.op, [result[operand] for operand in term.operands])
            if operands == term.operands:
                result[number] = number
            else:
                result[number] = self.make(
                    Term(term.op, term.attributes, operands, term.type, term.index)
                )
        return result
