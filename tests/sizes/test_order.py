"""How many submodules are numbered before a call."""

from __future__ import annotations

import ast

import pytest

from nnx_migrate.sizes.inference.order import method_with, number_of, total_of


def number(*lines: str) -> int | None:
    """The number before ``here()``: ``one()`` numbers one, ``some()`` nobody knows how many."""
    text = "def f(x, a):\n" + "".join(f"    {line}\n" for line in lines)
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    calls = [one for one in ast.walk(function) if isinstance(one, ast.Call)]
    named = {id(one): one.func.id for one in calls if isinstance(one.func, ast.Name)}
    counts = {key: {"one": 1, "some": None}.get(name, 0) for key, name in named.items()}
    (here,) = (one for one in calls if named.get(id(one)) == "here")
    return number_of(function, counts, here)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["here()", "one()"], 0, id="the first"),
        pytest.param(["x = one(1)", "y = here(one(2))"], 2, id="arguments run before the call"),
        pytest.param(["here(some)"], 0, id="a name is no call"),
        pytest.param(["if a:", "    one()", "else:", "    here()"], 0, id="the other branch"),
        pytest.param(["if a:", "    one()", "else:", "    one()", "here()"], 1, id="both branches"),
        pytest.param(
            ["for i in a:", "    x = abs(i)", "here()"], 0, id="a loop that builds nothing"
        ),
        pytest.param(["if a:", "    one()", "here()"], None, id="a condition before"),
        pytest.param(["if one():", "    here()"], 1, id="the test runs before the branch"),
        pytest.param(
            ["x = one() if a else 1", "here()"], None, id="a conditional expression before"
        ),
        pytest.param(["for i in a:", "    one()", "here()"], None, id="a loop before"),
        pytest.param(["for i in a:", "    here()"], None, id="in a loop"),
        pytest.param(["some()", "here()"], None, id="after what nobody can count"),
        pytest.param(["f = lambda: here()"], None, id="in a lambda"),
    ],
)
def test_what_is_numbered_before_is_counted_where_the_text_tells(
    lines: list[str], expected: int | None
) -> None:
    assert number(*lines) == expected


def test_a_call_that_no_method_holds_is_in_none() -> None:
    assert method_with((), ast.Call(ast.Name("f"), [], [])) is None


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["x = one(one())", "return x"], 2, id="in a row"),
        pytest.param(["if a:", "    one()", "else:", "    one()"], 1, id="one in each branch"),
        pytest.param(["if a:", "    return one()", "return one()"], None, id="an early return"),
        pytest.param(["if a:", "    return 1", "one()"], None, id="a return before"),
        pytest.param(["if a:", "    one()"], None, id="in one branch"),
        pytest.param(["some()"], None, id="what nobody can count"),
        pytest.param(["def g():", "    one()", "g()"], None, id="in a function inside"),
    ],
)
def test_what_a_function_numbers_is_counted_where_every_call_numbers_as_many(
    lines: list[str], expected: int | None
) -> None:
    text = "def f(x, a):\n" + "".join(f"    {line}\n" for line in lines)
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    calls = [one for one in ast.walk(function) if isinstance(one, ast.Call)]
    named = {id(one): ast.unparse(one.func) for one in calls}
    counts = {key: {"one": 1, "some": None}.get(name, 0) for key, name in named.items()}
    assert total_of(function, counts) == expected
