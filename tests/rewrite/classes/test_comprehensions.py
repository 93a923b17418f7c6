"""Comprehensions of a compact method that build something become loops in ``__init__``."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.classes.support import converted, refusal

MODEL = """\
n = 7

class M(nn.Module):
  @nn.compact
  def __call__(self, x):
{body}
"""


def _model(body: str) -> str:
    return MODEL.format(body=textwrap.indent(textwrap.dedent(body), "    "))


@pytest.mark.parametrize(
    "body",
    [
        "w = 7\nys = [nn.Dense(w)(x) for w in (3, 4)]\nreturn nn.Dense(w)(ys[0])",
        "ys = [nn.Dense(n)(x) for n in (3, 4)]\nreturn nn.Dense(n)(ys[0])",
        "w = (3, 4)\nys = [nn.Dense(w)(x) for w in w]\nreturn ys[len(w) - 1]",
        "for w in (3, 4):\n  ys = [nn.Dense(w)(x) for w in (5, 6)]\n  x = nn.Dense(w)(ys[0])\nreturn x",
        "return [([nn.Dense(w)(x) for w in (1, 2)], nn.Dense(w)(x)) for w in (3, 4)]",
    ],
)
def test_a_variable_that_is_read_outside_its_comprehension_is_refused(body: str) -> None:
    found = refusal(_model(body))
    assert "is also a variable of the comprehension" in found.reason


@pytest.mark.parametrize(
    "body",
    [
        "ys = [nn.Dense(w)(x) for w in (3, 4)]\nreturn ys[0]",
        "ys = [nn.Dense(w)(x) for w in (3, 4)]\nfor w in (5, 6):\n  x = nn.Dense(w)(x)\nreturn x, ys",
        "ys = [nn.Dense(w)(x) for w in (3, 4)]\nzs = [nn.Dense(w)(x) for w in (5, 6)]\nreturn ys, zs",
        "ys = [nn.Dense(w)(x) for w in (3, 4)]\nreturn sum(map(lambda w: w.sum(), ys))",
    ],
)
def test_a_variable_that_others_bind_anew_may_become_a_loop_s(body: str) -> None:
    text = converted(_model(body))
    assert "for i, w in enumerate((3, 4)):" in text
    assert '[getattr(self, f"Dense_{i}")(x) for i, w in enumerate((3, 4))]' in text


def test_a_generator_that_runs_later_is_refused() -> None:
    body = "ys = (nn.Dense(w)(x) for w in (3, 4))\nz = nn.Dense(5)(x)\nreturn z, list(ys)"
    assert "in a generator, which runs when it is read" in refusal(_model(body)).reason


def test_a_generator_that_is_read_where_it_stands_becomes_a_loop() -> None:
    body = "return sum(nn.Dense(4)(x) for w in (3, 4)) + sum([*(nn.Dense(4)(x) for k in (3, 4))])"
    text = converted(_model(body))
    assert "for i, w in enumerate((3, 4)):" in text
    assert "for i, k in enumerate((3, 4)):" in text


def test_the_else_of_a_loop_decides_what_is_built() -> None:
    text = converted(_model("for i in (1, 2):\n  x = x + i\nelse:\n  k = 5\nreturn nn.Dense(k)(x)"))
    init = text[text.index("def __init__") : text.index("def __call__")]
    assert "k = 5\n" in init


def test_a_loop_that_may_break_keeps_its_else() -> None:
    body = "for i in (1, 2):\n  if i == 2:\n    k = 4\n    break\nelse:\n  k = 5\nreturn nn.Dense(k)(x)"
    text = converted(_model(body))
    init = text[text.index("def __init__") : text.index("def __call__")]
    assert "break" in init
    assert "else:" in init


def test_a_loop_that_builds_and_may_break_before_its_else_is_refused() -> None:
    body = "for i in (1, 2):\n  x = nn.Dense(3)(x)\n  if i == 2:\n    break\nelse:\n  x = x + 1\nreturn x"
    assert "inside a loop with 'break' and 'else'" in refusal(_model(body)).reason
