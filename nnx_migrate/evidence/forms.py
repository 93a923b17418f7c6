"""The shapes a size's expression may have: ``c0 + b1*s1 + ... + p*a*b//(q*d)``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

Number = int | float
Sources = Mapping[str, Number]

_LARGEST = 64  # numerators and denominators of a factor beyond this are no design of a person


@dataclass(frozen=True)
class Form:
    """One candidate: a constant, integer multiples of sources, and one product of sources."""

    constant: int = 0
    terms: tuple[tuple[int, str], ...] = ()
    product: tuple[str, ...] = ()
    divisors: tuple[str, ...] = ()
    numerator: int = 1
    denominator: int = 1
    casts_to_int: bool = False  # the product holds a float: its integer part counts

    @property
    def literals(self) -> tuple[int, ...]:
        """Numbers that stand in the text themselves; 0, 1 and -1 say nothing."""
        found = [self.constant, *(factor for factor, _ in self.terms)]
        if self.product or self.divisors:
            found += [self.numerator, self.denominator]
        return tuple(abs(one) for one in found if abs(one) > 1)

    def value(self, sources: Sources) -> int | None:
        """The size for these sources; None when one is missing or the text would fail."""
        try:
            total = self.constant + sum(factor * sources[name] for factor, name in self.terms)
            if self.product or self.divisors:
                total += self._product(sources)
        except (KeyError, ZeroDivisionError, OverflowError):
            return None
        return total if isinstance(total, int) else None

    def _product(self, sources: Sources) -> int:
        above = self.numerator * math.prod(sources[name] for name in self.product)
        below = self.denominator * math.prod(sources[name] for name in self.divisors)
        if self.casts_to_int:
            return int(above / below) if below != 1 else int(above)
        return int(above // below)

    @property
    def text(self) -> str:
        """Python text over the sources' own texts."""
        parts = [_times(factor, name) for factor, name in self.terms]
        if self.product or self.divisors:
            parts.append(self._product_text())
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    def _product_text(self) -> str:
        factors = ([str(self.numerator)] if self.numerator != 1 else []) + list(self.product)
        above = " * ".join(factors) or "1"
        under = ([str(self.denominator)] if self.denominator != 1 else []) + list(self.divisors)
        if self.casts_to_int:
            return f"int({above} / {_product_text(under)})" if under else f"int({above})"
        return f"{above} // {_product_text(under)}" if under else above


def _times(factor: int, name: str) -> str:
    return name if factor == 1 else f"{factor} * {name}"


def _product_text(factors: Sequence[str]) -> str:
    return factors[0] if len(factors) == 1 else f"({' * '.join(factors)})"


def candidates(names: Sequence[str], rows: Sequence[tuple[Sources, int]]) -> Iterator[Form]:
    """Forms that read exactly ``names``, with coefficients that fit the first rows.

    ``rows`` are observations of one instance, the recorded one first; nothing is verified here.
    """
    if not names:
        yield Form(constant=rows[0][1])
        return
    yield from _products(names, rows[0])
    yield from _sums(names, (), rows)
    for count in range(2, len(names) + 1):
        for product in combinations(names, count):
            yield from _sums([one for one in names if one not in product], product, rows)


def _products(names: Sequence[str], row: tuple[Sources, int]) -> Iterator[Form]:
    """``p * a * b // (q * d)``: every name above or below the line."""
    sources, value = row
    casts_to_int = any(isinstance(sources[name], float) for name in names)
    for count in range(len(names)):
        for divisors in combinations(names, count):
            product = tuple(one for one in names if one not in divisors)
            above = math.prod((Fraction(sources[name]) for name in product), start=Fraction(1))
            below = math.prod((Fraction(sources[name]) for name in divisors), start=Fraction(1))
            if not above or not below:
                continue
            factor = (value * below / above).limit_denominator(_LARGEST)
            if 0 < factor.numerator <= _LARGEST:
                yield Form(
                    product=product,
                    divisors=divisors,
                    numerator=factor.numerator,
                    denominator=factor.denominator,
                    casts_to_int=casts_to_int,
                )


def _sums(
    terms: Sequence[str], product: tuple[str, ...], rows: Sequence[tuple[Sources, int]]
) -> Iterator[Form]:
    """``c0 + b1*s1 + ... + c*a*b`` with whole coefficients that solve the rows exactly."""
    if any(isinstance(rows[0][0][name], float) for name in (*terms, *product)):
        return
    columns = 1 + len(terms) + bool(product)
    matrix = [
        [
            Fraction(1),
            *(Fraction(sources[name]) for name in terms),
            *([Fraction(math.prod(sources[name] for name in product))] if product else []),
            Fraction(value),
        ]
        for sources, value in rows
    ]
    solution = _solution(matrix, columns)
    if solution is None or any(one.denominator != 1 for one in solution):
        return
    whole = [int(one) for one in solution]
    factors, tail = whole[1 : 1 + len(terms)], whole[1 + len(terms) :]
    if not all(factors) or not all(tail) or any(abs(one) > _LARGEST for one in (*factors, *tail)):
        return
    if tail and tail[0] < 0:
        return
    yield Form(
        constant=whole[0],
        terms=tuple(zip(factors, terms, strict=True)),
        product=product,
        numerator=tail[0] if tail else 1,
    )


def _solution(matrix: list[list[Fraction]], columns: int) -> list[Fraction] | None:
    """The one solution of the equations; None when there is none, or more than one."""
    rows = [list(row) for row in {tuple(row): None for row in matrix}]
    rank = 0
    for column in range(columns):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            return None
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        head = rows[rank][column]
        rows[rank] = [one / head for one in rows[rank]]
        for i in range(len(rows)):
            factor = rows[i][column]
            if i != rank and factor:
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    if any(row[-1] for row in rows[rank:]):
        return None
    return [rows[i][-1] for i in range(columns)]
