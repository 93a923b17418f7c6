"""Names that code binds, and targets paired with values."""

from __future__ import annotations

import ast

import pytest

from nnx_migrate.source.bindings import bound_names, names_bound_below, pairs_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, (b, *c) = f()", "a b c"),
        ("d[a] = b.c = e", ""),
        ("for a in b:\n    c = d", "a c"),
        ("with f() as (a, b): pass", "a b"),
        ("import a.b, c.d as e", "a e"),
        ("from a import b as c, d", "c d"),
        ("try: pass\nexcept E as a: pass", "a"),
        ("del a", "a"),
        ("if (a := f()): b: int = 3", "a b"),
        ("x(lambda a: (b := a))", ""),
        ("def a(b):\n    c = d", "a"),
        ("class a:\n    b = c", "a"),
        ("[(a := b) for b in c]", "a"),
        ("match a:\n    case {'n': b, **c}: pass\n    case [d, *e]: pass\n    case F(g=h) as i: pass", "b c d e h i"),
        ("match a:\n    case _: pass\n    case b.c: pass", ""),
    ],
)  # fmt: skip
def test_a_statement_binds_the_names_of_its_own_scope(text: str, expected: str) -> None:
    assert sorted(bound_names(ast.parse(text).body[0])) == expected.split()


def test_names_bound_below_are_also_those_of_inner_scopes() -> None:
    text = (
        "def f(a, *b, c=1, **d):\n    match a:\n        case [e]: return lambda g: [h for h in g]"
    )
    assert names_bound_below(ast.parse(text)) == set("abcdefgh")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, b = c, d", ["a c", "b d"]),
        ("[a, (b, e)] = c, (d, f)", ["a c", "b d", "e f"]),
        ("a, b = c", ["(a, b) c"]),
        ("a, *b = c, d", ["(a, *b) (c, d)"]),
        ("a, b = c, *d", ["(a, b) (c, *d)"]),
    ],
)
def test_targets_are_paired_with_the_values_they_get(text: str, expected: list[str]) -> None:
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Assign)
    pairs = pairs_of(statement.targets[0], statement.value)
    assert [f"{ast.unparse(one)} {ast.unparse(other)}" for one, other in pairs] == expected
