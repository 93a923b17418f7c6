"""What decides what is built, and is changed under another name or by a function."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.classes.support import converted, refusal

MODEL = """\
def push(ys, y):
  ys.append(y)

def look(ys, y):
  return len(ys) + y

class M(nn.Module):
  @nn.compact
  def __call__(self, x):
    ws = [3]
{change}
    for i, w in enumerate(ws):
      x = nn.Dense(w, name=f"d_{{i}}")(x)
    return x
"""


def _model(change: str) -> str:
    return MODEL.format(change=textwrap.indent(textwrap.dedent(change), "    "))


@pytest.mark.parametrize(
    "change",
    [
        "ys = ws\nys.append(4)",
        "zs = ws\nys = zs\nys[0] = 4",
        "ys = ws\nys += [4]",
        "ys = ws if True else None\nys.append(4)",
        "ws = vs = [5]\nvs += [4]",
        "k = ws.pop()",
        "with open('f'):\n    ws.append(4)",
    ],
)
def test_a_change_under_another_name_is_made_in_init_too(change: str) -> None:
    text = converted(_model(change))
    init = text[text.index("def __init__") : text.index("def __call__")]
    assert all(line in init for line in change.splitlines())


def test_names_that_one_statement_binds_are_bound_one_by_one_in_init() -> None:
    text = converted(_model("ys, n = ws, 2\nys.append(n)"))
    init = text[text.index("def __init__") : text.index("def __call__")]
    lines = [line.strip() for line in init.splitlines()]
    at = lines.index("ys = ws")
    assert lines[at : at + 3] == ["ys = ws", "n = 2", "ys.append(n)"]
    assert "ys, n = ws, 2" in text  # in the call, where it stood


@pytest.mark.parametrize("change", ["ys = list(ws)\nys.append(4)", "n = look(ws, 4)"])
def test_what_changes_nothing_that_is_built_stays_out_of_init(change: str) -> None:
    text = converted(_model(change))
    init = text[text.index("def __init__") : text.index("def __call__")]
    assert not any(line in init for line in change.splitlines())


@pytest.mark.parametrize(
    "change",
    [
        "[ws.append(k) for k in (5, 6)]",
        "k = [ws.pop()]",
        "if ws.pop():\n    pass",
        "print(next(iter(ws)), ws.pop())",
        "push(ws, 4)",
        "push(y=4, ys=ws)",
        "def add(y):\n  ws.append(y)\nadd(4)",
        "add = lambda y: ws.append(y)\nadd(4)",
        "def add(y):\n  ws[0] = y\nadd(4)",
    ],
)
def test_a_change_by_a_function_is_refused(change: str) -> None:
    assert refusal(_model(change)).reason == "this changes 'ws', which decides what is built"


def test_a_function_that_changes_its_own_local_is_no_reason() -> None:
    change = "def other(y):\n  ws = [y]\n  ws.append(y)\n  return ws\nn = other(4)"
    assert "for i, w in enumerate(ws)" in converted(_model(change))


def test_an_entry_changed_under_another_name_decides_a_size() -> None:
    text = converted(
        """\
        class M(nn.Module):
          @nn.compact
          def __call__(self, x):
            c = dict(a=3)
            d = c
            d["a"] = 4
            return nn.Dense(c["a"])(x)
        """
    )
    assert textwrap.dedent(text) == textwrap.dedent(
        """\
        class M(nnx.Module):
          def __init__(self, *, in_features: int, rngs: nnx.Rngs):
            c = dict(a=3)
            d = c
            d["a"] = 4
            self.Dense_0 = nnx.Linear(in_features, c["a"], rngs=rngs)

          def __call__(self, x):
            c = dict(a=3)
            d = c
            d["a"] = 4
            return self.Dense_0(x)
        """
    )
