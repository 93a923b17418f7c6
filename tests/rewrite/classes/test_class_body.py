"""What the statements of a class body read of the class itself."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted, refusal

MODEL = """\
class M(nn.Module):
  width: int = 3
  def setup(self):
    self.d = nn.Dense(self.width)
  def run(self, x, k=1):
    return self.d(x)
  def __call__(self, x):
    return self.run(x)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "options = {'features': width}",
        "SCALE = 2.0 * width",
        "half: 'typing.ClassVar[int]' = width // 2",
        "def help(self, k=width):\n    return k",
        "@partial(print, width)\n  def help(self):\n    return 1",
    ],
)
def test_a_class_body_that_reads_a_field_is_refused(statement: str) -> None:
    found = refusal(f"{MODEL}  {statement}\n")
    assert found.reason == "the class body reads the field width, which NNX has in __init__"


@pytest.mark.parametrize(
    "statement",
    ["encode = run", "encode = functools.partialmethod(run, k=2)", "encode = jax.jit(run)"],
)
def test_a_method_with_two_names_is_refused(statement: str) -> None:
    found = refusal(f"{MODEL}  {statement}\n")
    assert found.reason == "the method run has another name in the class as well"


@pytest.mark.parametrize(
    "statement",
    ["options = {'width': 3}", "def help(self, width=3):\n    return width"],
)
def test_other_statements_of_a_class_body_stay(statement: str) -> None:
    assert "class M(nnx.Module):" in converted(f"{MODEL}  {statement}\n")
