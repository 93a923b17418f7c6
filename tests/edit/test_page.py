"""Files show how they are laid out."""

from __future__ import annotations

import pytest

from nnx_migrate.edit.page import WIDTH, Page, page_of, quote_of, width_of


@pytest.mark.parametrize(
    ("longest", "lines", "width"),
    [(79, 200, 80), (80, 200, 80), (87, 200, 88), (95, 200, 100), (400, 200, 120), (79, 20, WIDTH)],
)
def test_a_file_shows_its_width_where_it_is_long_enough(
    longest: int, lines: int, width: int
) -> None:
    text = "\n".join(["x" * longest] * lines)
    assert width_of(text) == width


def test_one_link_or_line_in_a_hundred_is_no_width() -> None:
    lines = ["x" * 70] * 150
    assert width_of("\n".join([*lines, "y" * 300, "# https://" + "z" * 200])) == 80


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("x = f(\n    a)\ny = [\n    b]\n", "    "),
        ("  x = f(\n      a)\n  y = f(\n      a)\n  z = f(\n          a)\n", "    "),
        ("class A:\n  def f(\n      a):\n    x = f(\n      a)\n", "  "),
        ("x = f(a,\n      b)\n", "  "),
        ("x = [\n]\n", "  "),
        ("", "  "),
    ],
)
def test_a_file_shows_how_it_indents_inside_of_brackets(text: str, inner: str) -> None:
    assert page_of(text, "  ").inner == inner


def test_tabs_stay_tabs() -> None:
    assert page_of("x = f(\n    a)\n", "\t") == Page("\t")


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("a = 'x'\nb = 'y'\nc = \"z\"\n", "'"),
        ('a = "x"\nb = "y"\nc = \'z\'\n', '"'),
        ("# it's, don't, won't\na = \"x\"\n", '"'),
        ('"""A page."""\na = \'x\'\n', "'"),
        ("a = 1\n", '"'),
    ],
)
def test_the_quotes_of_a_file_are_those_of_most_of_its_strings(text: str, quote: str) -> None:
    assert quote_of(text) == quote
