"""Sizes as expressions: constants are joined where integers allow it."""

from __future__ import annotations

import ast
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.abstract.expression import (
    Expr,
    binary,
    choose_size,
    input_size,
    literal,
    parse,
    product,
)

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv}
SIGNS = {"+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "//": ast.FloorDiv()}


def chain(*parts: tuple[str, int]) -> Expr:
    """``n``, with one operation after the other."""
    made = parse("n")
    for sign, value in parts:
        made = binary(made, SIGNS[sign], literal(value))
    return made


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([("-", 2), ("//", 2), ("+", 1)], "n // 2"),
        ([("-", 2), ("//", 2), ("+", 1), ("-", 2), ("//", 2), ("+", 1)], "n // 4"),
        ([("-", 3), ("+", 1)], "n - 2"),
        ([("+", 1), ("-", 1)], "n"),
        ([("+", 4), ("//", 2)], "n // 2 + 2"),
        ([("//", 3), ("//", 2)], "n // 6"),
        ([("-", 3), ("//", 2)], "(n - 3) // 2"),
        ([("*", 4), ("//", 2)], "n * 4 // 2"),  # n may be no whole number
        ([("//", 2), ("*", 2)], "n // 2 * 2"),
        ([("//", -2), ("//", 3)], "n // -2 // 3"),
        ([("+", 1), ("*", 2)], "(n + 1) * 2"),
    ],
)
def test_constants_are_joined(parts: list[tuple[str, int]], text: str) -> None:
    assert chain(*parts).text == text


WIDTH = input_size("x", -1)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (binary(binary(literal(2), ast.Mult(), WIDTH), ast.FloorDiv(), literal(2)), WIDTH),
        (
            binary(product([WIDTH, parse("3"), parse("4")]), ast.FloorDiv(), literal(2)),
            product([WIDTH, parse("3"), parse("2")]),
        ),
    ],
)
def test_a_part_of_so_many_times_the_size_of_an_input_is_joined_too(
    made: Expr, expected: Expr
) -> None:
    assert made.text == expected.text


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("+-*"), st.integers(-7, 7)),
        st.tuples(st.just("//"), st.integers(-4, 4).filter(bool)),
    ),
    max_size=6,
)


@given(st.integers(-50, 50), OPERATIONS)
def test_a_joined_expression_has_the_same_value(n: int, parts: list[tuple[str, int]]) -> None:
    plain = n
    for sign, value in parts:
        plain = OPERATORS[sign](plain, value)
    assert eval(chain(*parts).text, {"n": n}) == plain


@pytest.mark.parametrize(
    ("test", "yes", "no", "expected"),
    [
        ("size != width", "width", "size", "width"),
        ("size != width", "size", "width", "size"),
        ("width == size", "width", "size", "size"),
        ("self.n - 1 != n", "n", "self.n - 1", "n"),
        ("size != width", "width", "other", "width if size != width else other"),
        ("size < width", "width", "size", "width if size < width else size"),
        ("size != width != n", "width", "size", "width if size != width != n else size"),
        ("self.deep", "width", "size", "width if self.deep else size"),
    ],
)
def test_a_size_that_both_branches_agree_on_needs_no_condition(
    test: str, yes: str, no: str, expected: str
) -> None:
    assert choose_size(*map(parse, (test, yes, no))).text == expected
