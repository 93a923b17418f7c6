"""Statements are laid out within the width of their file."""

from __future__ import annotations

import libcst as cst
import pytest

from nnx_migrate.edit.expressions import code_of
from nnx_migrate.edit.page import Page
from nnx_migrate.edit.statements import on_one_line
from nnx_migrate.edit.wrapping import refit, wrap

PAGE = Page("  ", 40)


def laid(text: str, *, is_moved: bool = False) -> str:
    (statement,) = cst.parse_module(text).body
    return cst.Module([wrap(statement, 4, PAGE, is_moved=is_moved)]).code


@pytest.mark.parametrize(
    "text",
    [
        "x = f(a, b, c)\n",
        "x = f(\n    a,\n    b,\n)\n",  # its lines fit
        "from some_package import a_name, another_name\n",
        "x = a_name_that_is_as_long_as_it_is_because_it_is\n",
        "x = f(first_argument, second_argument,  # why\n  third)\n",
        'x = f("""some text over\n  two lines""", second_argument, third_one)\n',
        "x = first_argument_of_all if a_condition else None\n",
    ],
)
def test_what_fits_or_cannot_be_laid_out_stays(text: str) -> None:
    assert laid(text) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "self.layer = nnx.Linear(features, width, rngs=rngs)\n",
            "self.layer = nnx.Linear(\n  features, width, rngs=rngs\n)\n",
        ),
        (
            "self.layer = nnx.Linear(in_features, features, width, rngs=rngs)\n",
            "self.layer = nnx.Linear(\n  in_features,\n  features,\n  width,\n  rngs=rngs,\n)\n",
        ),
        (
            "return f(kernel_init=init(some_scale, ('embed', 'mlp')), rngs=rngs)\n",
            "return f(\n  kernel_init=init(\n    some_scale, ('embed', 'mlp')\n  ),\n  rngs=rngs,\n)\n",
        ),
        (
            "sizes = [first_size, second_size, third_size]\n",
            "sizes = [\n  first_size,\n  second_size,\n  third_size,\n]\n",
        ),
        (
            "x = layers(some_input, another_input, third).sum\n",
            "x = layers(\n  some_input, another_input, third\n).sum\n",
        ),
        (
            "net = lazy(a_module.Network, width=Size('x'))(3)\n",
            "net = lazy(\n  a_module.Network, width=Size('x')\n)(3)\n",
        ),
        (
            "net = lazy(Net, a=Size('x'), b=Size('y'))(first=3, second=[4, 5])\n",
            "net = lazy(\n  Net, a=Size('x'), b=Size('y')\n)(first=3, second=[4, 5])\n",
        ),
        (
            "net = lazy(Net, a=Size('x'), b=Size('y'))(first=3, second=4, third=[5, 6, 7])\n",
            "net = lazy(\n  Net, a=Size('x'), b=Size('y')\n)(\n  first=3, second=4, third=[5, 6, 7]\n)\n",
        ),
        (
            "y = y + layers(some_input, another_input, third)\n",
            "y = y + layers(\n  some_input, another_input, third\n)\n",
        ),
        (
            "f(one_argument + another_one for one in arguments)\n",  # no comma behind it
            "f(\n  one_argument + another_one for one in arguments\n)\n",
        ),
        (
            "x = (first_of_the_terms + second_of_the_terms)\n",
            "x = (\n  first_of_the_terms + second_of_the_terms\n)\n",
        ),
    ],
)
def test_a_long_line_opens_its_last_brackets(before: str, after: str) -> None:
    assert laid(before) == after
    cst.parse_module(after)
    assert laid(after) == after


def test_parts_that_come_from_elsewhere_lose_its_line_ends() -> None:
    text = "x = f(a, init(\n        b, c\n    ), d)\n"
    assert laid(text, is_moved=True) == "x = f(a, init(b, c), d)\n"
    assert laid(text) == text


@pytest.mark.parametrize("comma", ["", ","])
def test_flattening_drops_the_comma_of_a_line_end_alone(comma: str) -> None:
    text = f"x = f((\n    a,\n), {{\n  'b': c{comma}\n}}, [d{comma}\n], e,\n)\n"
    assert laid(text, is_moved=True) == "x = f((a,), {'b': c}, [d], e)\n"


@pytest.mark.parametrize(
    ("lines", "flat"),
    [
        ("(\n  a\n  if b\n  else c\n)", "(a if b else c)"),
        ("(a\n  and b\n  or not\n  c\n  in d)", "(a and b or not c in d)"),
        ("(a\n  is\n  not\n  b)", "(a is not b)"),
        ("[\n  a\n  for a in b\n  if a\n]", "[a for a in b if a]"),
        ("(a\n  .b\n  .c(1))", "(a.b.c(1))"),
        ("(lambda a:\n  a)", "(lambda a: a)"),
        ("(\n  # why\n  a + # and\n  b\n)", "(a + b)"),
    ],
)
def test_an_expression_on_one_line_keeps_the_blanks_that_it_needs(lines: str, flat: str) -> None:
    assert code_of(on_one_line(cst.parse_expression(lines))) == flat


def test_only_an_edit_that_made_a_line_too_long_changes_its_layout() -> None:
    (short,) = cst.parse_module("y = block(y, mask=a_mask)\n").body
    (long,) = cst.parse_module("y = getattr(self, name)(y, mask=a_mask, more=1)\n").body
    assert cst.Module([refit(short, long, 4, PAGE)]).code.count("\n") == 3
    assert refit(long, long, 4, PAGE) is long


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        (
            "x = nn.Dropout(rate=rate_of_all)(\n  x, train=1\n)\n",
            "x = self.Dropout_0(\n  x, train=1\n)\n",
            "x = self.Dropout_0(x, train=1)\n",
        ),
        (  # it fitted on one line and was broken all the same
            "x = nn.Dense(3)(\n  x\n)\n",
            "x = self.Dense_0(\n  x\n)\n",
            "x = self.Dense_0(\n  x\n)\n",
        ),
        (
            "x = nn.Dropout(rate=rate_of_all)(\n  x, train=1,\n)\n",
            "x = self.Dropout_0(\n  x, train=1,\n)\n",
            "x = self.Dropout_0(\n  x, train=1,\n)\n",
        ),
        (
            "x = nn.Dropout(rate=rate_of_all)(\n  x, train=1  # why\n)\n",
            "x = self.Dropout_0(\n  x, train=1  # why\n)\n",
            "x = self.Dropout_0(\n  x, train=1  # why\n)\n",
        ),
    ],
)
def test_what_needed_several_lines_and_fits_on_one_now_stands_there(
    old: str, new: str, result: str
) -> None:
    (before,), (after,) = cst.parse_module(old).body, cst.parse_module(new).body
    assert cst.Module([refit(before, after, 4, PAGE)]).code == result
